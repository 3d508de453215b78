//! The console, in a real browser against a real server: what a person sees, by mouse and by
//! keyboard, and that the browser has nothing to complain about.

mod browser;
mod distributed;
mod journey;
mod keyboard;
mod parking_lot;
mod rebuilds;
mod reconciliation;
mod shortcuts;

use std::{collections::BTreeSet, time::Duration};

use browser::{Browser, ENTER, TAB};
use futures::future::join_all;
use serde_json::{Value, json};
use tidings_testkit::{Kind, World, model::Change};

/// Makes tests of functions that take the kind of a world: of pages that tell something else where Kafka is the log.
macro_rules! on_each_log {
    ($($name:ident),+ $(,)?) => {
        $crate::console::on_each_log!(@one on_the_outbox, tidings_testkit::Kind::Embedded, $($name),+);
        $crate::console::on_each_log!(@one on_kafka, tidings_testkit::Kind::distributed(), $($name),+);
    };
    (@one $module:ident, $kind:expr, $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name($kind).await;
                }
            )+
        }
    };
}
pub(crate) use on_each_log;

/// The browser logs the 401 by which a page learns that nobody is logged in.
const NOT_LOGGED_IN: &str = "/console/session - Failed to load resource: the server responded with a status of 401";

/// Users 1, 2, ...
const HANDLES: [&str; 24] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade", "kelp", "lark", "maple",
    "north", "opal", "pine", "quill", "reed", "sable", "tern", "umber", "vale", "wren", "yarrow",
];

/// The picture for the README takes more traffic than a person's bucket holds.
async fn world() -> World {
    super::world(&[("rate.follow_capacity", "10000")]).await
}

async fn logged_in() -> (World, Browser) {
    logged_in_on(Kind::chosen()).await
}

async fn logged_in_on(kind: Kind) -> (World, Browser) {
    let world = super::world_on(kind, &[("rate.follow_capacity", "10000")]).await;
    let browser = Browser::start().await;
    browser.open(&login_link(&world).await).await;
    browser.see_text("h1", "Flow").await;
    (world, browser)
}

/// A fresh one-time link into the console.
async fn login_link(world: &World) -> String {
    let printed = world.run(&["login-link"]).await;
    let (_, rest) = printed.split_once("/login?link=").unwrap_or_else(|| panic!("no link in: {printed}"));
    let secret: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    url(world, &format!("/login?link={secret}"))
}

fn url(world: &World, path: &str) -> String {
    format!("{}{path}", world.url())
}

async fn register(world: &World, handles: &[&str]) {
    let admin = world.admin().await;
    for (index, handle) in handles.iter().enumerate() {
        let body = json!({ "user_id": (index + 1).to_string(), "handle": handle });
        admin.post("/v1/admin/users", &body).await.json(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_there_is_a_login_and_nothing_else() {
    let world = world().await;
    let browser = Browser::start().await;
    for path in ["/", "/#/events", "/#/users/1", "/#/parked"] {
        browser.open(&url(&world, path)).await;
        browser.see_text("h1", "Log in").await;
        let text = browser.text().await;
        assert!(text.contains("tidings login-link") && text.contains("tidings token --admin"), "{text}");
        assert!(!text.contains("Log out") && !text.contains("Events"), "{text}");
    }

    browser.click("#token").await;
    browser.type_keys(&format!("no-token{ENTER}")).await;
    browser.see_text("[role=alert]", "This token does not work").await;
    browser.picture("console-login").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_one_time_link_logs_in_once_and_leaves_no_secret_in_the_address() {
    let world = world().await;
    let browser = Browser::start().await;
    let link = login_link(&world).await;
    browser.open(&link).await;
    browser.see_text("h1", "Flow").await;
    assert_eq!(browser.url().await, url(&world, "/#/flow"));

    browser.click("#logout").await;
    browser.see_text("main", "You are logged out").await;
    browser.open(&link).await;
    browser.see_text("[role=alert]", "This link does not work").await;
    assert_eq!(browser.url().await, url(&world, "/"));

    let token = world.admin_token().await;
    browser.run("document.querySelector('#token').value = arguments[0]", vec![json!(token)]).await;
    browser.click("button[type=submit]").await;
    browser.see_text("h1", "Flow").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_made_by_http_shows_in_the_flow_in_the_events_and_at_both_users() {
    let (world, browser) = logged_in().await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    register(&world, &HANDLES).await;
    // More events than one answer of the events page holds.
    for follower in 3..=24 {
        let follower = world.user(follower).await;
        follower.follow(1).await;
        follower.follow(2).await;
    }
    let flow = world.drain().await;

    let relation = "[data-stage=projector][data-name=relation]";
    let head = flow["log"]["head"].as_u64().unwrap();
    assert!(head >= 68, "24 registrations and 44 follows are events: {flow}");
    browser.see_text("[data-stage=log] [data-metric=head]", &head.to_string()).await;
    browser.see_text("[data-stage=facts][data-name='ledger.relation'] [data-metric=total]", "44").await;
    see_exact(&browser, &format!("{relation} [data-metric=lag]"), "0").await;
    see_exact(&browser, &format!("{relation} [data-metric=parked]"), "0").await;
    see_exact(&browser, "[data-metric=behind]", "up to date").await;
    browser.see_text("#verdict", "Every projection is up to date").await;
    traffic_for_a_picture(&world).await;
    browser.see_text("#verdict", "Every projection is up to date").await;
    browser.picture("console-flow-light").await;
    browser.prefer("dark").await;
    browser.picture("console-flow-dark").await;
    browser.resize(390, 844).await;
    browser.picture("console-phone").await;
    browser.resize(1360, 840).await;
    browser.prefer("light").await;

    browser.open(&url(&world, "/#/events")).await;
    browser.click(".events > li:first-child summary").await;
    browser.see_text(".json", "\"type\": \"relation.").await;
    for content in ["\"partitionkey\": ", "\"from\": ", "\"to\": "] {
        browser.see_text(".json", content).await;
    }
    browser.see_text(".live", "Paused while you read").await;
    browser.picture("console-events").await;
    older_events_go_back_to_the_first(&browser).await;

    browser.open(&url(&world, "/#/users")).await;
    browser.click("#find-user").await;
    browser.type_keys(&format!("amber{ENTER}")).await;
    see_exact(&browser, "[data-counter=followers]", "22").await;
    browser.see_text("#followers", "20 of 22 shown").await;
    browser.click("#followers button").await;
    browser.see_text("#followers", "22 users").await;
    browser.click("#followers tbody a").await;
    browser.see_text("#following tbody", "amber").await;

    browser.click("#compare-user").await;
    browser.type_keys(&format!("3{ENTER}")).await;
    browser.see_text("#common tbody", "amber").await;
    browser.run("scrollTo(0, 0)", vec![]).await;
    browser.picture("console-user").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

async fn see_exact(browser: &Browser, css: &str, text: &str) {
    let script = "return document.querySelector(arguments[0])?.textContent === arguments[1]";
    browser.until(script, vec![json!(css), json!(text)], &format!("`{css}` = “{text}”")).await;
}

async fn older_events_go_back_to_the_first(browser: &Browser) {
    // An answer holds 50 events, so the first registration is on an older page.
    let first = "return Boolean(document.querySelector('[data-offset=\"1\"]'))";
    while browser.run(first, vec![]).await == json!(false) {
        let before = browser.run("return document.querySelectorAll('.events > li').length", vec![]).await;
        browser.click("#older").await;
        let grown = "return document.querySelectorAll('.events > li').length > arguments[0]";
        browser.until(grown, vec![before], "an older page").await;
    }
}

/// Two minutes of follows and unfollows for the picture in the README; only where one is asked for.
async fn traffic_for_a_picture(world: &World) {
    if std::env::var_os("TIDINGS_SCREENSHOTS").is_none() {
        return;
    }
    let users = join_all((3..=24).map(|user| world.user(user))).await;
    let mut beats = tokio::time::interval(Duration::from_millis(100));
    for beat in 0..1_200_u32 {
        beats.tick().await;
        // A tide, so that the lines of the picture have something to show.
        let height = 6.0 + 5.0 * (f64::from(beat) / 160.0).sin();
        let wave = (0..height as u64).map(|n| {
            let turn = u64::from(beat) * 7 + n;
            // Twelve targets, so that lists stay on one page; following amber again changes nothing.
            let (target, own) = (turn / 22 % 12 + 3, turn % 22 + 3);
            let target = if target == own { 1 } else { target };
            let change = if target != 1 && turn / 264 % 2 == 1 { Change::Unfollow } else { Change::Follow };
            users[(turn % 22) as usize].change(change, target)
        });
        for answer in join_all(wave).await {
            answer.json(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_reaches_and_works_every_control() {
    let (world, browser) = logged_in().await;
    register(&world, &HANDLES[..3]).await;
    world.user(2).await.follow(1).await;
    world.drain().await;
    for (path, ready) in [
        ("/#/flow", "[data-stage=projector]"),
        ("/#/events", ".events > li"),
        ("/#/users/1", "#followers tbody tr"),
        ("/#/parked", ".empty:not([hidden])"),
        ("/#/journey", ".empty:not([hidden])"),
        ("/#/rebuilds", ".empty:not([hidden])"),
        ("/#/reconciliation", ".empty:not([hidden])"),
        ("/#/audit", ".empty:not([hidden])"),
    ] {
        browser.open(&url(&world, path)).await;
        browser.see(ready).await;
        browser.reload().await;
        browser.see(ready).await;
        let controls = mark_controls(&browser).await;
        // A field for a moment has a stop for each of its parts.
        let moments = browser.run("return document.querySelectorAll('[type=datetime-local]').length", vec![]).await;
        let presses = controls.len() + 2 + 8 * moments.as_u64().unwrap() as usize;
        let reached = tab_through(&browser, presses).await;
        assert!(reached.is_superset(&controls), "{path}: not reached by Tab: {:?}", &controls - &reached);
    }

    // Enter follows a link, and the focus goes with it.
    focus(&browser, "#nav a[href='#/events']").await;
    browser.type_keys(&ENTER.to_string()).await;
    browser.see_text("h1:focus", "Events").await;
    focus(&browser, ".events > li:first-child summary").await;
    browser.type_keys(&ENTER.to_string()).await;
    browser.see(".event[open] .json").await;
    focus(&browser, "#live").await;
    browser.type_keys(&ENTER.to_string()).await;
    see_exact(&browser, "#live", "Pause").await;

    // The skip link is the first stop, and leads past the bar.
    browser.reload().await;
    browser.see(".events > li").await;
    browser.type_keys(&TAB.to_string()).await;
    browser.see(".skip:focus").await;
    browser.type_keys(&ENTER.to_string()).await;
    browser.see("#main:focus").await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

/// Numbers everything that can be operated, and returns what it is.
async fn mark_controls(browser: &Browser) -> BTreeSet<String> {
    let script = "
        const all = 'a[href], button, input, select, textarea, summary, [tabindex=\"0\"]';
        const shown = [...document.querySelectorAll(all)].filter((each) => each.checkVisibility());
        const name = (each, i) => `${i} ${each.tagName} ${each.id} ${each.textContent.trim()}`;
        return shown.map((each, i) => (each.dataset.stop = name(each, i)))";
    strings(&browser.run(script, vec![]).await)
}

async fn tab_through(browser: &Browser, presses: usize) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    for _ in 0..presses {
        browser.type_keys(&TAB.to_string()).await;
        let script = "
            const at = document.activeElement;
            const outlined = getComputedStyle(at).outlineStyle !== 'none';
            return at === document.body || outlined ? at.dataset.stop ?? '' : `no outline: ${at.dataset.stop}`";
        reached.insert(browser.run(script, vec![]).await.as_str().unwrap_or_default().to_owned());
    }
    reached
}

async fn focus(browser: &Browser, css: &str) {
    browser.see(css).await;
    browser.run("document.querySelector(arguments[0]).focus()", vec![json!(css)]).await;
}

fn strings(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|each| each.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dark_and_light_follow_the_system_until_somebody_chooses() {
    let (_world, browser) = logged_in().await;
    browser.see("[data-stage=projector]").await;
    browser.prefer("light").await;
    assert!(!is_dark(&browser).await);
    browser.prefer("dark").await;
    assert!(is_dark(&browser).await);
    browser.resize(390, 844).await;
    let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.run(overflow, vec![]).await, json!(0), "a phone should not scroll sideways");
    browser.resize(1360, 840).await;

    // Auto, light, dark: one press is light, and it outlives the page and outweighs the system.
    browser.click("#theme").await;
    assert!(!is_dark(&browser).await);
    browser.reload().await;
    browser.see("[data-stage=projector]").await;
    assert!(!is_dark(&browser).await);
    browser.click("#theme").await;
    browser.prefer("light").await;
    assert!(is_dark(&browser).await);
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}

async fn is_dark(browser: &Browser) -> bool {
    let script = "const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
        return r + g + b < 200";
    browser.run(script, vec![]).await == json!(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_said_to_be_gone_and_taken_up_again_when_it_is_back() {
    let (world, browser) = logged_in().await;
    browser.see("[data-stage=projector]").await;
    world.kill().await;
    browser.see_text("#banner", "The server is not reachable").await;
    // Longer than the page's own rhythm of a second: it has to be woken, not just to go on.
    let long = "return /for ([2-9]|\\d\\d)/.test(document.querySelector('#link-state').title)";
    browser.until(long, vec![], "an outage of two seconds").await;
    // Where the page looks for it; the world's own start would take another port.
    let address = world.url();
    let server = world.spawn(&["serve", "--listen", address.trim_start_matches("http://")]);
    server.line_containing(&address);
    let gone = "return document.querySelector('#banner').hidden && !document.body.classList.contains('stale')";
    browser.until(gone, vec![], "the end of the banner").await;
    // The session outlives the server, and the page shows what the new one says.
    register(&world, &HANDLES[..2]).await;
    world.user(2).await.follow(1).await;
    browser.see_text("[data-stage=facts][data-name='ledger.relation'] [data-metric=total]", "1").await;
    assert_eq!(browser.errors(&["ERR_CONNECTION_REFUSED"]).await, Vec::<String>::new());
}
