//! Somebody is told when a key dies: at least once, and nearly always once.

use std::{collections::BTreeSet, time::Duration};

use tidings_backbone::{
    Clock,
    alerts::{Alerts, Options},
    limits::{ALERT_CROWD_NAMED, ALERT_DEATHS_SINGLY_MAX, ALERT_MINUTE},
    relay::sink::webhook::Secret,
};
use tidings_event::Timestamp;
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, versions};
use crate::{
    sinks::webhook::{Receiver, SECRET},
    world::{Fault, Recorder, Running, quick},
};

on_every_engine!(
    each_death_is_told_once_and_signed,
    while_the_receiver_is_down_nothing_is_lost_and_then_all_is_told,
    after_a_crash_between_sending_and_noting_a_death_is_told_again_under_the_same_id,
    two_processes_tell_each_death_once,
    a_key_that_was_revived_before_anybody_was_told_is_no_news,
    when_many_keys_die_at_once_those_beyond_the_first_are_told_together,
);

const TIMEOUT: Duration = Duration::from_secs(5);

fn alerts(site: &Site, receiver: &Receiver) -> Alerts {
    let options = Options { url: receiver.url.clone(), secret: Secret::parse(SECRET).unwrap(), timeout: TIMEOUT };
    Alerts::new(site.db.clone(), site.clock.clone(), &options).unwrap()
}

/// A site on which these keys are dead.
async fn dead(engine: Engine, keys: &[&str]) -> (Site, Running, std::sync::Arc<Recorder>) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    let running = site.start(&recorder, quick(1));
    for key in keys {
        recorder.fail(key, 1, Fault::Error, u32::MAX);
        site.emit(versions(key, 1..=3)).await;
        running.settle().await;
        site.clock.advance(Duration::from_secs(1));
    }
    (site, running, recorder)
}

async fn each_death_is_told_once_and_signed(engine: Engine) {
    let (site, running, recorder) = dead(engine, &["a"]).await;
    let receiver = Receiver::start().await;
    let mut alerts = alerts(&site, &receiver);
    for _ in 0..3 {
        alerts.round().await.unwrap();
    }
    let parked = site.only_parked().await;
    let body = receiver.bodies().remove(0);
    assert_eq!(receiver.bodies().len(), 1);
    receiver.verify_signatures();
    assert_eq!((&body["type"], &body["timestamp"]), (&"key.died".into(), &parked.died_at.unwrap().to_string().into()));
    let data = &body["data"];
    assert_eq!((&data["projector"], &data["key"]), (&"recorder".into(), &"a".into()));
    assert_eq!((&data["waiting"], &data["attempts"]), (&3.into(), &1.into()));
    assert_eq!((&data["error"], &data["event_id"]), (&parked.error.into(), &parked.event_id.unwrap().into()));
    assert_eq!((&data["event_type"], &data["topic"]), (&"switch.turned".into(), &(*parked.part.topic).into()));

    site.clock.advance(Duration::from_secs(1));
    site.redrive_key("a").await;
    running.settle().await;
    alerts.round().await.unwrap();
    recorder.fail("a", 1, Fault::Error, 0);
    site.redrive_key("a").await;
    running.settle().await;
    alerts.round().await.unwrap();
    running.stop().await;
    let ids = receiver.ids();
    assert_eq!(ids.len(), 2, "a redriven key that dies again is another death");
    assert_ne!(ids[0], ids[1]);
}

async fn while_the_receiver_is_down_nothing_is_lost_and_then_all_is_told(engine: Engine) {
    let (site, running, _) = dead(engine, &["a", "b", "c"]).await;
    running.stop().await;
    let receiver = Receiver::start().await;
    receiver.answer(&["503 Service Unavailable", "302 Found", "400 Bad Request", "500 Oh", "429 Slow"]);
    let mut alerts = alerts(&site, &receiver);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let pause = alerts.round().await.unwrap();
        pauses.push(pause.as_secs());
        site.clock.advance(pause);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16], "it is asked less and less often");
    let failed = receiver.ids().len();
    assert_eq!(failed, 5);
    for _ in 0..3 {
        site.clock.advance(Duration::from_mins(5));
        alerts.round().await.unwrap();
    }
    let mut told: Vec<String> =
        receiver.bodies()[failed..].iter().map(|body| body["data"]["key"].to_string()).collect();
    told.sort();
    assert_eq!(told, ["\"a\"", "\"b\"", "\"c\""]);
}

async fn after_a_crash_between_sending_and_noting_a_death_is_told_again_under_the_same_id(engine: Engine) {
    let (site, running, _) = dead(engine, &["a"]).await;
    running.stop().await;
    let receiver = Receiver::start().await;
    alerts(&site, &receiver).round().await.unwrap();
    // What such a crash leaves: the death is taken for a while, and not noted as told.
    let until = site.clock.now().0 + 2 * i64::try_from(TIMEOUT.as_millis()).unwrap();
    let mut tx = site.db.write(tidings_backbone::Durability::Full).await.unwrap();
    tx.conn().execute("crashing", "UPDATE parked_key SET tell_at = ?", vec![until.into()]).await.unwrap();
    tx.commit().await.unwrap();

    let mut other = alerts(&site, &receiver);
    other.round().await.unwrap();
    assert_eq!(receiver.ids().len(), 1, "whoever took it may still be telling it");
    site.clock.advance(2 * TIMEOUT);
    for _ in 0..3 {
        other.round().await.unwrap();
        site.clock.advance(Duration::from_hours(1));
    }
    let ids = receiver.ids();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1], "the receiver can tell that it is the same");
}

async fn two_processes_tell_each_death_once(engine: Engine) {
    let keys: Vec<String> = (0..12).map(|number| format!("k{number}")).collect();
    let (site, running, _) = dead(engine, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    running.stop().await;
    let receiver = Receiver::start().await;
    let (mut first, mut second) = (alerts(&site, &receiver), alerts(&site, &receiver));
    let (one, other) = tokio::join!(first.round(), second.round());
    one.unwrap();
    other.unwrap();
    let mut ids = receiver.ids();
    ids.sort();
    ids.dedup();
    assert_eq!((receiver.ids().len(), ids.len()), (12, 12));
}

async fn a_key_that_was_revived_before_anybody_was_told_is_no_news(engine: Engine) {
    let (site, running, recorder) = dead(engine, &["a"]).await;
    recorder.fail("a", 1, Fault::Error, 0);
    site.redrive_key("a").await;
    running.settle().await;
    running.stop().await;
    let receiver = Receiver::start().await;
    alerts(&site, &receiver).round().await.unwrap();
    assert_eq!(receiver.ids(), [""; 0]);
}

async fn when_many_keys_die_at_once_those_beyond_the_first_are_told_together(engine: Engine) {
    let site = Site::with_clock(engine, Clock::manual(Timestamp(1_000_000_000))).await;
    let recorder = Recorder::new("recorder");
    let keys: Vec<String> = (0..50).map(|number| format!("k{number}")).collect();
    keys.iter().for_each(|key| recorder.fail(key, 1, Fault::Error, u32::MAX));
    let running = site.start(&recorder, quick(1));
    site.emit(keys.iter().flat_map(|key| versions(key, 1..=1))).await;
    running.settle().await;
    let receiver = Receiver::start().await;
    let mut alerts = alerts(&site, &receiver);
    receiver.answer(&[&["204 No Content"; ALERT_DEATHS_SINGLY_MAX][..], &["503 Service Unavailable"]].concat());
    let pause = alerts.round().await.unwrap();
    assert_eq!(receiver.ids().len(), ALERT_DEATHS_SINGLY_MAX + 1, "the rest was told together, and not taken");
    site.clock.advance(pause);
    alerts.round().await.unwrap();
    alerts.round().await.unwrap();
    let bodies = receiver.bodies();
    receiver.verify_signatures();
    let (together, singly) = bodies.split_last().unwrap();
    assert_eq!(singly.len(), ALERT_DEATHS_SINGLY_MAX + 1, "once more, and then never again");
    let data = &together["data"];
    assert_eq!((&together["type"], &data["keys"]), (&"keys.died".into(), &30.into()));
    assert_eq!((&data["by_projector"]["recorder"], &data["died_from"]), (&30.into(), &data["died_until"]));
    let named: BTreeSet<&str> =
        data["first"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap()).collect();
    let told: BTreeSet<&str> =
        singly[..ALERT_DEATHS_SINGLY_MAX].iter().map(|body| body["data"]["key"].as_str().unwrap()).collect();
    assert_eq!((named.len(), told.len(), named.is_disjoint(&told)), (ALERT_CROWD_NAMED, ALERT_DEATHS_SINGLY_MAX, true));

    // Who dies within the same minute is told after it, and so is one of them that was redriven and is dead again.
    site.clock.advance(Duration::from_millis(1));
    recorder.fail("late", 1, Fault::Error, u32::MAX);
    site.emit(versions("late", 1..=1)).await;
    let again = named.first().unwrap();
    site.redrive_key(again).await;
    running.settle().await;
    alerts.round().await.unwrap();
    assert_eq!(receiver.ids().len(), bodies.len());
    site.clock.advance(ALERT_MINUTE);
    alerts.round().await.unwrap();
    let since: BTreeSet<String> =
        receiver.bodies()[bodies.len()..].iter().map(|body| body["data"]["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(since, BTreeSet::from(["late".to_owned(), (*again).to_owned()]));
    running.stop().await;

    // What a crash leaves that comes before they are noted as told, or a clock that was set back since.
    for (tell_at, wait) in
        [(2 * TIMEOUT + ALERT_MINUTE, 2 * TIMEOUT + ALERT_MINUTE), (Duration::from_hours(9), TIMEOUT)]
    {
        let told = receiver.bodies().len();
        let until = site.clock.now().0 + i64::try_from(tell_at.as_millis()).unwrap();
        let mut tx = site.db.write(tidings_backbone::Durability::Full).await.unwrap();
        tx.conn().execute("crashing", "UPDATE parked_key SET tell_at = ?", vec![until.into()]).await.unwrap();
        tx.commit().await.unwrap();
        let mut other = self::alerts(&site, &receiver);
        site.clock.advance(wait);
        other.round().await.unwrap();
        let bodies = &receiver.bodies()[told..];
        assert_eq!(bodies.len(), ALERT_DEATHS_SINGLY_MAX + 1, "all of them, as if for the first time");
        assert_eq!(bodies.last().unwrap()["data"]["keys"], 31);
    }
}
