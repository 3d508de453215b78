//! Reconciliation in the console, worked by the keyboard alone.

use tidings_testkit::Kind;

use super::{
    HANDLES, NOT_LOGGED_IN,
    browser::ENTER,
    keyboard::{press, tab_to, the_dialog_keeps_the_focus, the_page_fits_a_phone, the_page_is_accessible},
    logged_in_on, on_each_log, register,
};
use crate::database::Hand;

on_each_log!(what_was_damaged_by_hand_is_found_and_repaired_by_the_keyboard_alone);

async fn what_was_damaged_by_hand_is_found_and_repaired_by_the_keyboard_alone(kind: Kind) {
    let (world, browser) = logged_in_on(kind).await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    register(&world, &HANDLES).await;
    for follower in 3..=24 {
        world.user(follower).await.follow(1).await;
    }
    world.drain().await;
    let mut hand = Hand::in_database_of(&world).await;
    assert_eq!(hand.run("DELETE FROM follower WHERE from_user_id IN (3, 4, 5)").await, 3);

    browser.type_keys("gc").await;
    browser.see_text("h1:focus", "Reconciliation").await;
    browser.see_text(".empty", "Nothing was reconciled yet.").await;
    the_page_is_accessible(&browser).await;
    browser.type_keys("s").await;
    browser.see_text("dialog", "It only reads.").await;
    the_page_is_accessible(&browser).await;
    the_dialog_keeps_the_focus(&browser).await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text("h1", "One run").await;
    browser.see_text("#verdict", "3 differences.").await;
    press(&browser, "details.parts summary").await;
    browser.see_text("details.parts td", "mirror row missing").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    browser.picture("console-reconciliation").await;

    press(&browser, "#repair").await;
    browser.see_text("dialog .plan", "mirror row missing").await;
    the_page_is_accessible(&browser).await;
    the_dialog_keeps_the_focus(&browser).await;
    tab_to(&browser, "#repair-typed").await;
    browser.type_keys(&format!("repaid{ENTER}")).await;
    browser.see("#repair-typed:focus:invalid").await;
    browser.run("document.activeElement.select()", vec![]).await;
    browser.type_keys(&format!("repair{ENTER}")).await;
    browser.see("[data-repair=done]").await;
    world.drain().await;

    press(&browser, ".trail a").await;
    browser.see_text("h1:focus", "Reconciliation").await;
    browser.see_text("td", "3 differences.").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    browser.type_keys("s").await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text("#verdict", "Everything agrees.").await;
    world.verify().await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}
