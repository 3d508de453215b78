//! The live flow where Kafka is the log: every stage between the facts and the projections, each a process of its own.

use serde_json::{Value, json};
use tidings_testkit::{Kind, Options, Part, World};

use super::{
    HANDLES, NOT_LOGGED_IN,
    browser::Browser,
    keyboard::{press, the_page_fits_a_phone, the_page_is_accessible},
    login_link, register, see_exact,
};

const RELAY: &str = "[data-stage=relay]";

/// What the API tells of the stages that are the same whichever process is asked.
async fn told(world: &World, kind: &str) -> Value {
    let flow = world.admin().await.read("/v1/admin/flow?parts=true").await;
    let stages = flow["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["stage"] == kind).unwrap_or_else(|| panic!("no {kind}: {flow}")).clone()
}

/// The page comes to show what the API tells: nothing waits, and each stage is where it is.
async fn shows_all_of_it(world: &World, browser: &Browser) {
    world.drain().await;
    let (relay, topic, projector) =
        (told(world, "relay").await, told(world, "log").await, told(world, "projector").await);
    let position = |stage: &Value| stage["position"].as_i64().unwrap().to_string();
    see_exact(browser, &format!("{RELAY} .state"), "running").await;
    see_exact(browser, &format!("{RELAY} [data-metric=total]"), &position(&relay)).await;
    see_exact(browser, &format!("{RELAY} [data-metric=lag]"), "0").await;
    let of_topic = format!("[data-stage=log][data-name='{}'] [data-metric=end]", topic["name"].as_str().unwrap());
    see_exact(browser, &of_topic, &position(&topic)).await;
    see_exact(browser, "[data-stage=projector][data-name=relation] [data-metric=lag]", "0").await;
    let parts = projector["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 3, "{projector}");
    for part in parts {
        let row = format!("[data-part='{}/{}']", part["topic"].as_str().unwrap(), part["partition"]);
        see_exact(browser, &format!("{row} [data-metric=position]"), &part["position"].to_string()).await;
        see_exact(browser, &format!("{row} [data-metric=lag]"), "0").await;
    }
    browser.see_text("#verdict", "Every projection is up to date").await;
}

/// The position that each partition shows.
async fn positions(browser: &Browser) -> Vec<i64> {
    let script = "return [...document.querySelectorAll('[data-part] [data-metric=position]')]
        .map((cell) => Number(cell.textContent.replaceAll(',', '')))";
    let shown = browser.run(script, vec![]).await;
    shown.as_array().unwrap().iter().map(|position| position.as_i64().unwrap()).collect()
}

/// The relay that works, of two.
async fn active_relay(world: &World) -> Part {
    let mut active = Vec::new();
    for (part, page) in world.metrics().await {
        if matches!(part, Part::Relay(_)) && page.lines().any(|line| line == "tidings_relay_state{state=\"active\"} 1")
        {
            active.push(part);
        }
    }
    let [part] = active[..] else { panic!("one relay should be active: {active:?}") };
    part
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_shows_the_relay_the_topics_and_every_partition_and_they_move_with_what_is_written() {
    let options = Options::new(crate::BINARY).on(Kind::distributed()).apart().with("rate.follow_capacity", "10000");
    let world = World::start_with(options).await;
    register(&world, &HANDLES).await;
    let browser = Browser::start().await;
    browser.prefer("light").await;
    browser.resize(1360, 840).await;
    browser.open(&login_link(&world).await).await;
    browser.see_text("h1", "Flow").await;
    browser.see_text(".step-log h2", "Relay + log").await;
    see_exact(&browser, ".parts summary", "Partitions (3)").await;
    press(&browser, ".parts summary").await;
    shows_all_of_it(&world, &browser).await;
    assert_eq!(positions(&browser).await, [-1, -1, -1], "nobody follows anybody");

    for follower in 3..=24 {
        world.user(follower).await.follow(1).await;
    }
    shows_all_of_it(&world, &browser).await;
    let before = positions(&browser).await;
    assert!(before.iter().all(|position| *position >= 0), "22 followers are of all partitions: {before:?}");
    assert_eq!(browser.run("return document.querySelector('.parts').open", vec![]).await, json!(true));
    the_page_is_accessible(&browser).await;
    the_page_fits_a_phone(&browser).await;

    // The standby takes over, and what is shown goes on.
    let active = active_relay(&world).await;
    let standby = if active == Part::Relay(1) { Part::Relay(2) } else { Part::Relay(1) };
    world.kill_part(active).await;
    for follower in 3..=24 {
        world.user(follower).await.follow(2).await;
    }
    shows_all_of_it(&world, &browser).await;
    let after = positions(&browser).await;
    assert!(before.iter().zip(&after).all(|(before, after)| after > before), "{before:?}, {after:?}");
    assert_eq!(active_relay(&world).await, standby);

    // Nobody stands by any more: what waits is told, and why.
    world.kill_part(standby).await;
    world.user(3).await.follow(4).await;
    see_exact(&browser, &format!("{RELAY} .state"), "stopped").await;
    see_exact(&browser, &format!("{RELAY} [data-metric=lag]"), "1").await;
    browser.see_text("#verdict", "no process is the active relay").await;
    world.start_part(active, &[]).await;
    shows_all_of_it(&world, &browser).await;
    assert_eq!(browser.errors(&[NOT_LOGGED_IN]).await, Vec::<String>::new());
}
