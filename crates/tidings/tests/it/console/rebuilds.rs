//! Rebuilds in the console, worked by the keyboard alone.

use serde_json::{Value, json};
use tidings_testkit::{Kind, World};

use super::{
    NOT_LOGGED_IN,
    browser::{BACKSPACE, Browser, DOWN, ENTER, ESCAPE, TAB, UP},
    keyboard::{press, tab_to, the_dialog_keeps_the_focus, the_page_fits_a_phone, the_page_is_accessible},
    logged_in_on, on_each_log, register,
};

on_each_log!(
    a_rebuild_is_started_held_up_and_given_to_readers_by_the_keyboard_alone,
    a_rebuild_that_is_given_up_and_one_that_is_refused_say_so,
);

async fn before_the_rebuilds(kind: Kind) -> (World, Browser) {
    let (world, browser) = logged_in_on(kind).await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    register(&world, &super::HANDLES).await;
    for follower in 3..=24 {
        world.user(follower).await.follow(1).await;
    }
    world.drain().await;
    browser.type_keys("gb").await;
    browser.see_text("h1:focus", "Rebuilds").await;
    browser.see_text(".empty", "Nothing was rebuilt yet.").await;
    the_page_is_accessible(&browser).await;
    (world, browser)
}

async fn rebuilds(world: &World) -> Value {
    world.admin().await.read("/v1/admin/rebuilds").await["items"].take()
}

/// A change of mind is seen before it is done.
async fn what_is_only_said_is_not_done(world: &World, browser: &Browser) {
    // In place asks for an end instead of a switch.
    tab_to(browser, "#rebuild-way").await;
    browser.type_keys(&DOWN.to_string()).await;
    browser.see_text(".foresight", "Events are applied once more to the live generation 1 of relation").await;
    browser.see("#rebuild-until").await;
    browser.type_keys(&UP.to_string()).await;
    browser.see_text(".foresight", "Readers are given it at once when it is right").await;
    // What would be found wrong in the end is refused before it begins.
    tab_to(browser, "#rebuild-from").await;
    browser.type_keys(&format!("{DOWN}{DOWN}{DOWN}")).await;
    tab_to(browser, "#rebuild-from-offset").await;
    browser.type_keys(&format!("1{TAB}")).await;
    browser.see_text(".foresight [role=alert]", "lacks what was before").await;
    tab_to(browser, "#rebuild-from").await;
    browser.type_keys(&format!("{UP}{UP}{UP}")).await;
    browser.see_text(".foresight", "Readers are given it at once when it is right").await;
    assert_eq!(rebuilds(world).await, json!([]), "it was only said");
}

async fn a_rebuild_is_started_held_up_and_given_to_readers_by_the_keyboard_alone(kind: Kind) {
    let (world, browser) = before_the_rebuilds(kind).await;
    browser.type_keys("s").await;
    browser.see_text(".foresight", "Generation 2 of relation would be built beside the live one").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    the_dialog_keeps_the_focus(&browser).await;

    what_is_only_said_is_not_done(&world, &browser).await;
    tab_to(&browser, "#rebuild-pace").await;
    browser.type_keys("2").await;
    tab_to(&browser, "#rebuild-hold").await;
    browser.type_keys(" ").await;
    browser.see_text(".foresight", "It waits for your word before readers are given it. At most 2 events").await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text(".notice", "The rebuild of relation, generation 2 begins within a second.").await;
    browser.see("#start-rebuild:focus, h1:focus").await;

    browser.see("[data-rebuild=applying]").await;
    press(&browser, ".parts summary").await;
    let parts = if kind == Kind::Embedded { 1 } else { 3 };
    browser.see_text(".parts summary", &format!("Parts of the log ({parts})")).await;
    for part in 0..parts {
        browser.see_text(".parts td", &format!("/{part}")).await;
    }
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    browser.until("return document.querySelector('progress').value >= 20", vec![], "a fifth of it").await;
    if kind == Kind::Embedded {
        browser.picture("console-rebuilds").await;
    }
    press(&browser, "[data-act=pause]").await;
    browser.see_text("dialog h2", "Pause the rebuild of relation, generation 2?").await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text("[data-projector=relation] .state", "paused").await;
    press(&browser, "[data-act=resume]").await;
    // As fast as can be from here on.
    tab_to(&browser, "#resume-pace").await;
    browser.type_keys(&format!("{BACKSPACE}0{ENTER}")).await;
    browser.see("[data-rebuild=ready]").await;

    press(&browser, "[data-act=switch]").await;
    browser.see_text("dialog .foresight", "0 differences").await;
    // Where something may be lost, a word has to be typed.
    tab_to(&browser, "#switch-force").await;
    browser.type_keys(" ").await;
    browser.see("#switch-typed").await;
    the_page_is_accessible(&browser).await;
    press(&browser, "[data-act=confirm]").await;
    browser.see("#switch-typed:focus:invalid").await;
    browser.type_keys(&ESCAPE.to_string()).await;
    browser.see("[data-act=switch]:focus").await;
    assert_eq!(rebuilds(&world).await[0]["state"], json!("ready"), "readers have what they had");
    browser.type_keys(&ENTER.to_string()).await;
    press(&browser, "[data-act=confirm]").await;
    browser.see("[data-rebuild=done]").await;
    world.verify().await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN, "status of 409"]).await, Vec::<String>::new());
}

async fn a_rebuild_that_is_given_up_and_one_that_is_refused_say_so(kind: Kind) {
    let (world, browser) = before_the_rebuilds(kind).await;
    let slow = json!({ "projector": "relation", "events_per_second": 1 });
    world.admin().await.post("/v1/admin/rebuilds", &slow).await.json(200);
    browser.see("[data-rebuild=applying]").await;
    // While one is under way, no other begins.
    browser.type_keys("s").await;
    browser.see_text(".foresight [role=alert]", "a rebuild of it is under way").await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text(".foresight [role=alert]", "a rebuild of it is under way").await;
    browser.type_keys(&ESCAPE.to_string()).await;

    press(&browser, "[data-projector] [data-act=cancel]").await;
    browser.see_text("dialog", "What was built so far is removed.").await;
    // It cannot be undone, so a word has to be typed.
    browser.see("#cancel-typed:focus").await;
    the_page_is_accessible(&browser).await;
    press(&browser, "dialog [data-act=confirm]").await;
    browser.see("#cancel-typed:focus:invalid").await;
    browser.type_keys(&format!("relation{ENTER}")).await;
    browser.see("[data-rebuild=cancelled]").await;
    browser.see_text("[data-rebuild=cancelled]", "How far it was is not known.").await;
    browser.type_keys("ga").await;
    browser.see_text("[data-action='rebuild.cancel']", "Rebuild cancelled").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN, "status of 409"]).await, Vec::<String>::new());
}
