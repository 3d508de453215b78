//! Shortcuts: written on each page, silent while somebody types, and off for who does not want them.

use super::{
    NOT_LOGGED_IN,
    browser::ESCAPE,
    keyboard::{press, tab_to, the_dialog_keeps_the_focus, the_page_is_accessible},
    logged_in, see_exact,
};

#[tokio::test(flavor = "multi_thread")]
async fn shortcuts_are_written_on_the_page_keep_out_of_fields_and_can_be_turned_off() {
    let (_world, browser) = logged_in().await;
    browser.see_text(".keys", "every shortcut").await;
    for (keys, heading) in
        [("ge", "Events"), ("gu", "Users"), ("gb", "Rebuilds"), ("ga", "Audit"), ("gp", "Parked keys")]
    {
        browser.type_keys(keys).await;
        browser.see_text("h1:focus", heading).await;
        browser.see(".keys kbd").await;
    }
    browser.see_text(".keys", "redrive what is shown").await;

    // In a field a letter is a letter.
    tab_to(&browser, "#parked-error").await;
    browser.type_keys("r?gf").await;
    let typed = "return document.querySelector('#parked-error').value === 'r?gf' && !document.querySelector('dialog')";
    browser.until(typed, vec![], "what was typed").await;

    tab_to(&browser, "#redrive").await;
    browser.type_keys("?").await;
    browser.see_text("dialog h2", "Shortcuts").await;
    browser.see_text("dialog dd", "redrive what is shown").await;
    the_page_is_accessible(&browser).await;
    the_dialog_keeps_the_focus(&browser).await;
    press(&browser, "dialog .dialog-acts button:last-child").await;
    see_exact(&browser, "dialog .dialog-acts button:last-child", "Turn shortcuts on").await;
    browser.type_keys(&ESCAPE.to_string()).await;
    browser.see("#redrive:focus").await;

    // Off they stay, also after the page was loaded anew; the button is there all the same.
    browser.type_keys("ge").await;
    browser.reload().await;
    browser.see_text("h1", "Parked keys").await;
    browser.type_keys("?").await;
    press(&browser, "#keys").await;
    press(&browser, "dialog .dialog-acts button:last-child").await;
    press(&browser, "dialog .dialog-acts button:first-child").await;
    browser.see("#keys:focus").await;
    browser.type_keys("ge").await;
    browser.see_text("h1", "Events").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}
