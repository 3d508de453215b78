//! The journey of an event in the console, by the keyboard alone.

use serde_json::json;
use tidings_testkit::Kind;

use super::{
    NOT_LOGGED_IN,
    browser::{Browser, ENTER},
    keyboard::{press, tab_to, the_page_fits_a_phone, the_page_is_accessible},
    login_link, on_each_log, url,
};
use crate::parked::with_poison;

on_each_log!(the_journey_of_an_event_leads_from_the_list_of_events_to_the_parked_key);

async fn the_journey_of_an_event_leads_from_the_list_of_events_to_the_parked_key(kind: Kind) {
    let (world, _hand) = with_poison(kind, &[]).await;
    let browser = Browser::start().await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    browser.open(&login_link(&world).await).await;
    browser.see_text("h1", "Flow").await;

    // The newest event is one that was applied.
    browser.type_keys("ge").await;
    browser.see(".events > li:first-child summary").await;
    press(&browser, ".events > li:first-child summary").await;
    browser.see(".event[open] .json").await;
    press(&browser, ".event[open] a[href^='#/journey/']").await;
    browser.see_text("h1:focus", "Journey").await;
    browser.see_text("[data-kind=committed]", "Request").await;
    browser.see("[data-kind=relayed][data-state=relayed]").await;
    browser.see("[data-kind=projector][data-state=applied]").await;
    browser.see_text("[data-kind=projector] .took", "after the").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    browser.picture("console-journey").await;
    // It has come to its end: it is not asked for again, unless somebody says so.
    let asks = "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/journey')).length";
    assert_eq!(browser.run(asks, vec![]).await, json!(1));
    tab_to(&browser, "#journey-id").await;
    browser.type_keys(&ENTER.to_string()).await;
    browser.until(&format!("{asks} === 2"), vec![], "one more question").await;

    // One that failed: why, and where it waits.
    let dead = world.parked().await[0]["event_id"].as_str().unwrap().to_owned();
    browser.type_keys("/").await;
    browser.see("#journey-id:focus").await;
    browser.run("document.activeElement.select()", vec![]).await;
    browser.type_keys(&format!("{dead}{ENTER}")).await;
    browser.see_text("[data-kind=projector][data-state=dead]", "poison").await;
    the_page_is_accessible(&browser).await;
    press(&browser, "[data-state=dead] a").await;
    browser.see_text("h1:focus", "Key 4 of relation").await;

    browser.open(&url(&world, "/#/journey")).await;
    browser.see_text(".empty", "Enter the id of an event.").await;
    for (id, said) in [("019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c", "No event has this id"), ("nothing", "must be")] {
        tab_to(&browser, "#journey-id").await;
        browser.run("document.activeElement.select()", vec![]).await;
        browser.type_keys(&format!("{id}{ENTER}")).await;
        browser.see_text("[role=alert]", said).await;
        let waits = "return [...document.querySelectorAll('.loading')].every((each) => each.hidden)";
        browser.until(waits, vec![], "the end of “Loading…”").await;
    }
    assert_eq!(browser.run("return location.hash", vec![]).await, json!("#/journey/nothing"));
    let expected = [NOT_LOGGED_IN, "status of 404", "status of 400"];
    assert_eq!(browser.errors(&expected).await, Vec::<String>::new());
}
