//! What a person at a keyboard does, and what he must find on each page.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    browser::{Browser, ENTER, TAB},
    strings,
};

/// More stops than any page of a test has.
const STOPS_MAX: usize = 120;

/// Presses Tab until the control of this selector has the focus, as somebody without a mouse does.
pub(super) async fn tab_to(browser: &Browser, css: &str) {
    browser.see(css).await;
    for _ in 0..STOPS_MAX {
        let there = "return document.activeElement.matches(arguments[0])";
        if browser.run(there, vec![json!(css)]).await == json!(true) {
            return;
        }
        browser.type_keys(&TAB.to_string()).await;
    }
    panic!("Tab does not come to `{css}`; the page says:\n{}", browser.text().await);
}

/// Goes to a control and presses Enter.
pub(super) async fn press(browser: &Browser, css: &str) {
    tab_to(browser, css).await;
    browser.type_keys(&ENTER.to_string()).await;
}

/// The dialog that is open keeps the focus, whichever way somebody tabs, and each of its controls comes to have it.
pub(super) async fn the_dialog_keeps_the_focus(browser: &Browser) {
    browser.see("dialog[open]").await;
    let mark = "const all = 'a[href], button, input, select, textarea, summary, [tabindex=\"0\"]';
        const shown = [...document.querySelector('dialog[open]').querySelectorAll(all)]
            .filter((each) => each.checkVisibility() && !each.disabled);
        const name = (each, i) => `${i} ${each.tagName} ${each.id} ${each.textContent.trim()}`;
        return shown.map((each, i) => (each.dataset.stop = name(each, i)))";
    let controls = strings(&browser.run(mark, vec![]).await);
    let moments = "return document.querySelectorAll('dialog[open] [type=datetime-local]').length";
    let moments = browser.run(moments, vec![]).await.as_u64().unwrap() as usize;
    let stop = "const at = document.activeElement;
        const isInside = document.querySelector('dialog[open]').contains(at);
        return isInside ? at.dataset.stop ?? '' : 'outside: ' + at.outerHTML";
    for back in [false, true] {
        let mut reached = BTreeSet::new();
        // A field for a moment has a stop for each of its parts.
        for _ in 0..controls.len() + 2 + 8 * moments {
            if back {
                browser.shift_tab().await;
            } else {
                browser.type_keys(&TAB.to_string()).await;
            }
            let at = browser.run(stop, vec![]).await.as_str().unwrap().to_owned();
            assert!(!at.starts_with("outside"), "{at}");
            reached.insert(at);
        }
        assert!(reached.is_superset(&controls), "back {back}: not reached by Tab: {:?}", &controls - &reached);
    }
}

/// Every control has a name, ids are unique and lead somewhere, headings step down one by one, and text stands out
/// from what is behind it, in both themes.
pub(super) async fn the_page_is_accessible(browser: &Browser) {
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        let faults = strings(&browser.run(FAULTS, vec![]).await);
        assert_eq!(faults, BTreeSet::new(), "{scheme}, {}", browser.url().await);
    }
    browser.prefer("light").await;
}

const FAULTS: &str = r#"
    const faults = [];
    const all = (css) => [...document.querySelectorAll(css)].filter((each) => each.checkVisibility());
    const short = (each) => each.outerHTML.slice(0, 100);
    const named = (ids) => ids.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    const name = (each) => [each.getAttribute("aria-label"), named(each.getAttribute("aria-labelledby") ?? ""),
        ...[...(each.labels ?? [])].map((label) => label.textContent), each.textContent].find((text) => text?.trim());

    for (const each of all("a[href], button, input, select, textarea, summary, dialog, [role=region], progress"))
        if (!name(each)) faults.push(`no name: ${short(each)}`);
    for (const each of document.querySelectorAll("input, select, textarea"))
        if (!each.labels?.length && !each.getAttribute("aria-label")) faults.push(`no label: ${short(each)}`);
    const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
    for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`twice: #${id}`);
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"])
        for (const each of document.querySelectorAll(`[${attribute}]`))
            for (const id of each.getAttribute(attribute).split(" "))
                if (!ids.includes(id)) faults.push(`${attribute} of ${short(each)}`);
    for (const each of all("[tabindex]")) if (each.tabIndex > 0) faults.push(`out of order: ${short(each)}`);
    for (const each of all("th")) if (!each.scope) faults.push(`no scope: ${short(each)}`);
    for (const each of all("ul > *, ol > *")) if (each.tagName !== "LI") faults.push(`no item: ${short(each)}`);
    for (const each of all("svg")) if (!each.closest("[aria-hidden], [aria-label]")) faults.push(`no text for ${short(each)}`);
    if (all("h1").length !== 1) faults.push(`${all("h1").length} h1`);
    const levels = all("h1, h2, h3, h4").map((each) => Number(each.tagName[1]));
    levels.forEach((level, i) => { if (i && level > levels[i - 1] + 1) faults.push(`h${levels[i - 1]}, h${level}`); });

    const colour = (text) => {
        const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
        return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
    };
    const over = ([r, g, b, a], back) => [r, g, b].map((part, i) => part * a + back[i] * (1 - a));
    const behind = (each) => {
        if (!each) return [255, 255, 255];
        const own = colour(getComputedStyle(each).backgroundColor);
        return own[3] === 1 ? own.slice(0, 3) : over(own, behind(each.parentElement));
    };
    const light = (rgb) => rgb.map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const texts = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const each = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !each.checkVisibility() || each.closest(".skip, .heard")) continue;
        const style = getComputedStyle(each);
        const back = behind(each);
        const [a, b] = [light(over(colour(style.color), back)), light(back)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize);
        const least = size >= 24 || (size >= 18.5 && style.fontWeight >= 600) ? 3 : 4.5;
        if (ratio < least) faults.push(`${ratio.toFixed(1)}: ${texts.currentNode.data.trim()} in ${short(each)}`);
    }
    return faults;
"#;

/// Nothing scrolls sideways on the narrowest phone.
pub(super) async fn the_page_fits_a_phone(browser: &Browser) {
    browser.resize(360, 780).await;
    let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.run(overflow, vec![]).await, json!(0), "{}", browser.url().await);
    browser.resize(1360, 840).await;
}
