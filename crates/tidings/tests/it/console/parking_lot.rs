//! The parking lot in the console, worked by the keyboard alone: looked at, redriven, discarded, and in the audit.

use serde_json::json;
use tidings_testkit::{Kind, World};

use super::{
    NOT_LOGGED_IN,
    browser::{BACKSPACE, Browser, ENTER, ESCAPE, TAB},
    keyboard::{press, tab_to, the_dialog_keeps_the_focus, the_page_fits_a_phone, the_page_is_accessible},
    login_link, on_each_log, see_exact, url,
};
use crate::{database::Hand, parked::with_poison};

/// What user 4 did is parked, and somebody stands before the list of it.
async fn before_the_list(kind: Kind) -> (World, Hand, Browser) {
    let (world, hand) = with_poison(kind, &[]).await;
    let browser = Browser::start().await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    browser.open(&login_link(&world).await).await;
    browser.see_text("#verdict", "Some keys are dead").await;
    browser.type_keys("gp").await;
    browser.see_text("h1:focus", "Parked keys").await;
    browser.see_text("td", "dead").await;
    (world, hand, browser)
}

on_each_log!(a_dead_key_is_found_redriven_and_rid_of_its_poison_by_the_keyboard_alone);

async fn a_dead_key_is_found_redriven_and_rid_of_its_poison_by_the_keyboard_alone(kind: Kind) {
    let (world, mut hand, browser) = before_the_list(kind).await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    browser.picture("console-parked").await;

    // j goes to the first row's key, Enter into it.
    browser.type_keys(&format!("j{ENTER}")).await;
    browser.see_text("h1:focus", "Key 4 of relation").await;
    browser.see_text(".error-chain", "poison").await;
    browser.see_text(".section-head", "3 events in all").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;

    // A dialog that is left changes nothing, and gives the focus back.
    press(&browser, "#redrive").await;
    browser.see_text(".foresight", "1 key with 3 waiting events would be tried again. All at once.").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    the_dialog_keeps_the_focus(&browser).await;
    browser.type_keys(&ESCAPE.to_string()).await;
    browser.see("#redrive:focus").await;
    assert_eq!(world.parked().await[0]["state"], json!("dead"), "it was only asked");

    // What is asked for anew is shown before it is done.
    browser.type_keys("r").await;
    browser.see("#redrive-pace:focus").await;
    browser.type_keys(&format!("2{ENTER}")).await;
    browser.see_text(".foresight", "The last event is tried in 1.5 s.").await;
    assert_eq!(world.parked().await[0]["state"], json!("dead"), "what was not seen is not done");
    browser.picture("console-redrive").await;
    browser.type_keys(&format!("{TAB}perhaps")).await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text(".notice", "1 key with 3 waiting events is tried again.").await;
    world.drain().await;
    browser.see_text(".card .state", "dead").await;

    discard_the_first(&browser).await;
    world.drain().await;
    browser.see_text(".section-head", "2 events in all").await;
    hand.admit().await;
    browser.type_keys("r").await;
    browser.see_text(".foresight", "1 key with 2 waiting events would be tried again.").await;
    press(&browser, "[data-act=confirm]").await;
    browser.see_text(".empty", "This key is not parked.").await;
    world.drain().await;
    assert_eq!(world.counters(4).await, (2, 0), "all but what was discarded");

    browser.type_keys("ga").await;
    browser.see_text("h1:focus", "Audit").await;
    browser.see_text("[data-action='parking.discard']", "not worth it").await;
    let once = "return document.querySelectorAll(\"[data-action='parking.discard']\").length === 1";
    browser.until(once, vec![], "one discard").await;
    browser.see_text("[data-action='parking.redrive']", "perhaps").await;
    press(&browser, "[data-action='parking.discard'] summary").await;
    browser.see_text("[data-action='parking.discard'] .json", "relation.followed").await;
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

/// The event that failed is opened and discarded, after the wrong word was typed.
async fn discard_the_first(browser: &Browser) {
    browser.type_keys("j").await;
    browser.see(".cards > li:first-child summary:focus").await;
    browser.type_keys(&ENTER.to_string()).await;
    press(browser, "[data-act=discard]").await;
    browser.see_text("dialog .foresight", "It is the one that failed").await;
    the_page_is_accessible(browser).await;
    the_dialog_keeps_the_focus(browser).await;
    tab_to(browser, "#discard-reason").await;
    browser.type_keys(&format!("not worth it{TAB}5{ENTER}")).await;
    // The browser says what is wrong with the word, and the field has the focus again.
    browser.see("#discard-typed:focus:invalid").await;
    the_first_answer_to_a_discard_is_lost(browser).await;
    browser.type_keys(&format!("{BACKSPACE}4{ENTER}")).await;
    browser.see_text("dialog [role=alert]", "The server is not reachable.").await;
    // Whether it is done nobody knows here; asked for once more, it says so.
    press(browser, "dialog [data-act=confirm]").await;
    browser.see_text(".notice", "The event is discarded. The next event is tried.").await;
    let keys = browser.run("return window.keysOfDiscards", vec![]).await;
    let keys: Vec<&str> = keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1] && keys[0].len() == 32, "{keys:?}");
}

/// Its request arrives, and is done.
async fn the_first_answer_to_a_discard_is_lost(browser: &Browser) {
    let lose = "const original = window.fetch;
        window.keysOfDiscards = [];
        window.fetch = async (path, options) => {
            const answer = await original(path, options);
            if (!path.endsWith('/discard')) return answer;
            if (window.keysOfDiscards.push(options.headers['idempotency-key']) > 1) return answer;
            throw new TypeError('the answer is lost');
        }";
    browser.run(lose, vec![]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_is_in_the_address_and_is_what_is_redriven() {
    let (world, mut hand, browser) = before_the_list(Kind::chosen()).await;
    // By the first letters of what the choice says.
    browser.type_keys("/").await;
    browser.see("#parked-state:focus").await;
    browser.type_keys("dead").await;
    tab_to(&browser, "#parked-error").await;
    browser.type_keys(&format!("poison{ENTER}")).await;
    see_exact(&browser, "#redrive", "Redrive what the filter shows…").await;
    browser.see_text("td", "dead").await;
    assert_eq!(browser.url().await, url(&world, "/#/parked?state=dead&error=poison"));
    browser.reload().await;
    browser.see_text("td", "dead").await;

    tab_to(&browser, "#parked-key").await;
    browser.type_keys(&format!("5{ENTER}")).await;
    browser.see_text(".empty", "No parked key meets the filter.").await;
    press(&browser, ".filter .quiet").await;
    see_exact(&browser, "#redrive", "Redrive every key…").await;
    browser.see_text("td", "dead").await;

    // What the server refuses is said with the field that is at fault.
    browser.open(&url(&world, &format!("/#/parked?error={}", "x".repeat(5_000)))).await;
    browser.see_text("[role=alert]", "must have 1 to 4000 bytes").await;
    the_page_is_accessible(&browser).await;

    what_was_shown_is_redriven_and_nothing_more(&world, &mut hand, &browser).await;
    // The button is still there; the dialog says that nothing is left.
    press(&browser, "#redrive").await;
    browser.see_text(".foresight [role=alert]", "no parked key").await;
    browser.type_keys(&ESCAPE.to_string()).await;
    world.drain().await;
    world.verify().await;
    let expected = [NOT_LOGGED_IN, "status of 400", "status of 404", "status of 409"];
    assert_eq!(browser.errors(&expected).await, Vec::<String>::new());
}

/// Somebody reads a dialog while others die, and while the error of one changes.
async fn what_was_shown_is_redriven_and_nothing_more(world: &World, hand: &mut Hand, browser: &Browser) {
    browser.open(&url(world, "/#/parked?error=poison")).await;
    browser.see_text("td", "dead").await;
    browser.type_keys("r").await;
    browser.see_text(".foresight", "1 key with 3 waiting events would be tried again.").await;
    hand.admit().await;
    hand.refuse("follower", "NEW.from_user_id IN (5, 6)").await;
    for user in [5, 6] {
        world.user(user).await.follow(2).await;
        world.drain().await;
    }
    hand.admit().await;
    hand.run("UPDATE parked_key SET error = 'another' WHERE event_key = '5'").await;
    press(browser, "[data-act=confirm]").await;
    browser.see_text(".notice", "1 key with 3 waiting events is tried again.").await;
    world.drain().await;
    let states: Vec<_> = world.parked().await.iter().map(|key| (key["key"].clone(), key["state"].clone())).collect();
    assert_eq!(states, [(json!("5"), json!("dead")), (json!("6"), json!("dead"))], "they died while it was read");

    browser.type_keys("r").await;
    browser.see_text(".foresight", "1 key with 1 waiting event would be tried again.").await;
    hand.run("UPDATE parked_key SET error = 'poison' WHERE event_key = '5'").await;
    press(browser, "[data-act=confirm]").await;
    browser.see_text("dialog [role=alert]", "more keys match now (2) than were shown (1)").await;
    browser.see_text(".foresight", "2 keys with 2 waiting events would be tried again.").await;
    assert_eq!(world.parked().await.len(), 2, "nothing was done");
    press(browser, "[data-act=confirm]").await;
    browser.see_text(".empty", "No parked key meets the filter.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_leaves_the_focus_and_a_page_of_keys_where_they_are() {
    let settings = [("rate.follow_capacity", "10000"), ("http.request_timeout_ms", "20000")];
    let (world, mut hand) = with_poison(Kind::chosen(), &settings).await;
    world.register(7..=70).await;
    hand.admit().await;
    hand.refuse("follower", "NEW.to_user_id = 1").await;
    for user in 7..=70 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    let browser = Browser::start().await;
    browser.open(&login_link(&world).await).await;
    browser.see_text("h1", "Flow").await;
    browser.type_keys("gp").await;
    browser.see_text(".as-of", "50 keys on this page").await;
    it_waits_longer_than_the_server_takes(&browser).await;
    browser.type_keys("n").await;
    browser.see_text(".pager", "Page 2").await;
    browser.see_text(".as-of", "15 keys on this page").await;
    tab_to(&browser, "tbody tr:first-child button").await;
    let key = browser.run("return document.activeElement.closest('tr').querySelector('a').textContent", vec![]).await;

    // Its row is drawn anew while it has the focus: one more event waits.
    let key: u64 = key.as_str().unwrap().parse().unwrap();
    world.user(key).await.follow(2).await;
    let waits = "const row = document.activeElement.closest('tr');
        return row?.children[5].textContent === '2' && row.querySelector('a').textContent === arguments[0]";
    browser.until(waits, vec![json!(key.to_string())], "the focus in the row that has changed").await;
    browser.type_keys("p").await;
    browser.see_text(".as-of", "50 keys on this page").await;
    browser.see(".scroll:focus").await;

    // What came without a key is seen, and can be opened.
    for table in ["parked_key", "parked_event"] {
        hand.run(&format!("UPDATE {table} SET event_key = '' WHERE event_key = '4'")).await;
    }
    browser.see_text("tbody tr:first-child a", "(empty)").await;
    browser.click("tbody tr:first-child a").await;
    browser.see_text("h1:focus", "Key (empty) of relation").await;
    browser.see_text(".error-chain", "poison").await;
    browser.see_text(".section-head", "3 events in all").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

/// Else what the server says of a slow request would never be seen.
async fn it_waits_longer_than_the_server_takes(browser: &Browser) {
    let note = "const original = AbortSignal.timeout;
        AbortSignal.timeout = (ms) => ((window.patienceMs = ms), original.call(AbortSignal, ms))";
    browser.run(note, vec![]).await;
    browser.until("return window.patienceMs > 20000", vec![], "patience beyond `http.request_timeout_ms`").await;
}
