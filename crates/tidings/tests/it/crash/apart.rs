//! Roles in processes of their own: restarted one after another, killed and frozen while clients write.

use std::time::Duration;

use serde_json::Value;
use tidings_testkit::{Kind, Options, Part, World, on_every_distributed_world, random};

use super::{Togglers, chaos::each_event_is_in_the_log_once_and_in_order, nothing_is_lost_or_doubled, progress};

const CLIENTS: u64 = 20;
/// Acknowledged changes between two incidents.
const GAP: u64 = 60;
const RELAYS: [Part; 2] = [Part::Relay(1), Part::Relay(2)];
const PATIENCE: Duration = Duration::from_secs(60);

on_every_distributed_world!(
    a_rolling_restart_of_every_process_under_load_loses_and_doubles_nothing,
    any_process_may_be_killed_under_load_and_nothing_is_lost_or_doubled,
    a_process_that_was_frozen_for_longer_than_its_leases_writes_nothing_twice,
    the_other_relay_works_while_the_active_one_is_frozen_and_afterwards_nothing_is_doubled,
    the_verification_tells_no_difference_while_everybody_toggles,
);

async fn apart(kind: Kind) -> World {
    let options = Options::new(crate::BINARY).on(kind).apart();
    World::start_with(options.with("rate.follow_capacity", 1_000_000)).await
}

/// Lets clients toggle while `incident` happens to each of `parts`, then compares everything.
async fn under_load(kind: Kind, name: &str, parts: &[Part], incident: impl AsyncFn(&World, Part)) {
    let world = apart(kind).await;
    let mut togglers = Togglers::new(&world, 1..=CLIENTS, &[], &mut random::generator(name)).await;
    let incidents = async |acknowledged: &_| {
        for part in parts {
            progress(acknowledged, GAP).await;
            incident(&world, *part).await;
        }
        progress(acknowledged, GAP).await;
    };
    togglers.toggle_during(incidents).await;
    togglers.everything_acknowledged_holds().await;
    let users: Vec<u64> = (1..=CLIENTS).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
}

async fn a_rolling_restart_of_every_process_under_load_loses_and_doubles_nothing(kind: Kind) {
    let parts = [
        Part::Api(1),
        Part::Project(1),
        Part::Relay(1),
        Part::Project(2),
        Part::Api(2),
        Part::Relay(2),
        Part::Project(3),
    ];
    under_load(kind, "rolling restart", &parts, async |world, part| world.restart_part(part).await).await;
}

async fn any_process_may_be_killed_under_load_and_nothing_is_lost_or_doubled(kind: Kind) {
    let parts = [
        Part::Project(1),
        Part::Relay(1),
        Part::Api(1),
        Part::Relay(2),
        Part::Project(2),
        Part::Api(2),
        Part::Project(3),
        Part::Relay(1),
    ];
    let dies = async |world: &World, part| {
        world.kill_part(part).await;
        world.start_part(part, &[]).await;
    };
    under_load(kind, "killed apart", &parts, dies).await;
}

async fn a_process_that_was_frozen_for_longer_than_its_leases_writes_nothing_twice(kind: Kind) {
    let freezes = async |world: &World, part| {
        world.pause_part(part);
        // Longer than the patience with a silent relay, and with a silent reader of Kafka.
        tokio::time::sleep(Duration::from_secs(8)).await;
        world.resume_part(part);
    };
    under_load(kind, "frozen apart", &[Part::Relay(1), Part::Relay(2), Part::Project(1)], freezes).await;
}

/// Waits until one of the relays is active and the other one stands by; answers which they are.
async fn active_and_standby(world: &World) -> [Part; 2] {
    let is = |page: &str, state: &str| page.contains(&format!("tidings_relay_state{{state=\"{state}\"}} 1"));
    let looking = async {
        loop {
            let pages = world.metrics().await;
            let found = |state: &str| pages.iter().find(|(part, page)| RELAYS.contains(part) && is(page, state));
            if let (Some((active, _)), Some((standby, _))) = (found("active"), found("standby")) {
                return [*active, *standby];
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("one relay works, and the other one stands by")
}

async fn the_other_relay_works_while_the_active_one_is_frozen_and_afterwards_nothing_is_doubled(kind: Kind) {
    let world = apart(kind).await;
    let mut togglers = Togglers::new(&world, 1..=CLIENTS, &[], &mut random::generator("relay frozen")).await;
    let [mut active, _] = active_and_standby(&world).await;
    for _ in 0..2 {
        let freezes = async |acknowledged: &_| {
            progress(acknowledged, GAP).await;
            world.pause_part(active);
            progress(acknowledged, GAP).await;
        };
        togglers.toggle_during(freezes).await;
        // It is still frozen, in the middle of whatever it did: all that is in the log now the other one has brought.
        world.drain().await;
        let goes_on = async |acknowledged: &_| {
            progress(acknowledged, GAP).await;
            world.resume_part(active);
            progress(acknowledged, GAP).await;
        };
        togglers.toggle_during(goes_on).await;
        // Whoever of them works from then on, one does, and the other stands by.
        [active, _] = active_and_standby(&world).await;
    }
    togglers.everything_acknowledged_holds().await;
    let (versions, users) = (togglers.versions(), Vec::from_iter(1..=CLIENTS));
    nothing_is_lost_or_doubled(&world, &versions, &users).await;
    each_event_is_in_the_log_once_and_in_order(&world, &versions).await;
}

async fn the_verification_tells_no_difference_while_everybody_toggles(kind: Kind) {
    let world = apart(kind).await;
    // Few pairs, so that each changes often.
    let mut togglers = Togglers::new(&world, 1..=6, &[], &mut random::generator("verified while toggling")).await;
    let verified = async |acknowledged: &_| {
        for _ in 0..3 {
            progress(acknowledged, GAP).await;
            let output = world.output(&["verify", "--json"]).await;
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let report: Value = serde_json::from_slice(&output.stdout).expect(&errors);
            assert_eq!(report["differences"], 0, "{report}");
            let expected = if report["in_flight"] == 0 { 0 } else { 2 };
            assert_eq!(output.status.code(), Some(expected), "{report}");
        }
    };
    togglers.toggle_during(verified).await;
    world.drain().await;
    assert_eq!(world.verify().await["in_flight"], 0);
}
