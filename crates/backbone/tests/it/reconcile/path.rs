//! The outbox and the log: what is missing, doubled or foreign is found, and what is on its way is not.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tidings_backbone::{
    Clock, Durability, outbox,
    reconcile::{Found, Options, RepairState, Run, State},
};
use tidings_testkit::{database::Engine, on_every_server};

use super::{
    site::{Site, actor, options},
    waiting::waiting,
};

on_every_server!(
    what_is_not_relayed_is_on_its_way_until_it_is_late,
    what_polling_relays_have_not_sent_is_named_exactly,
    what_the_log_lacks_has_twice_or_has_from_elsewhere_is_found_exactly,
);

fn check<'r>(run: &'r Run, name: &str) -> &'r Found {
    run.checks.iter().find(|found| found.check == name).unwrap()
}

fn kinds(found: &Found) -> Vec<(&str, u64)> {
    found.kinds.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

async fn what_is_not_relayed_is_on_its_way_until_it_is_late(engine: Engine) {
    let site = Site::on(engine).await;
    let (relay, running) = (site.relay().unwrap(), site.start());
    site.turn(0..20).await;
    running.settle().await;
    let patient = site.reconciler(Options { relay_late: Duration::from_mins(1), ..options() });
    relay.stop().await;
    let _gate = site.lights.gate.lock().await;
    // Events without lights: nobody waits for them to arrive.
    site.world.emit("switch.turned", (0..30).map(|number| (format!("key {number}"), 1))).await;
    drop(_gate);
    let run = patient.run_now(None, &actor()).await.unwrap();
    assert_eq!((run.state, run.differences, run.lagging), (State::Done, 0, 30), "{run:?}");
    let run = site.reconciler(options()).run_now(None, &actor()).await.unwrap();
    assert_eq!(kinds(check(&run, "relay")), [("event not relayed", 30)], "{run:?}");
    assert!(check(&run, "relay").note.is_some() && check(&run, "relay").examples.len() == 20);
    // In the log they are not missing: the relay has not noted them.
    assert_eq!((check(&run, "log").differences, check(&run, "log").lagging), (0, 30), "{run:?}");
    assert_eq!(run.repair.state, RepairState::None, "the relay sends them");
    let relay = site.relay().unwrap();
    running.settle().await;
    let run = patient.run_now(None, &actor()).await.unwrap();
    assert_eq!((run.differences, run.lagging), (0, 0), "{run:?}");
    running.stop().await;
    relay.stop().await;
}

async fn what_polling_relays_have_not_sent_is_named_exactly(engine: Engine) {
    let clock = Clock::manual(Clock::system().now());
    let site = Site::on_with_clock(engine, clock.clone()).await.polled();
    let (relay, running) = (site.relay().unwrap(), site.start());
    site.turn(0..1).await;
    clock.advance(Duration::from_millis(1));
    site.turn(1..20).await;
    running.settle().await;
    relay.stop().await;
    let reconciler = site.reconciler(Options { relay_late: Duration::from_mins(1), ..options() });
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((run.state, run.differences, run.lagging), (State::Done, 0, 0), "{run:?}");

    // One row waits among others that came after it and are sent; younger ones wait as well. And one row was struck
    // off whose record is not there.
    let pending = "INSERT INTO outbox_pending (shard, seq) SELECT CRC32(event_key) % 16, seq FROM outbox WHERE seq = 5";
    site.world.execute(pending).await;
    let sql = "INSERT INTO outbox (seq, event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, \
               version, occurred_at, payload, metadata) SELECT 12, 0x00112233445566778899aabbccddeeff, event_type, 1, \
               aggregate_type, aggregate_id, event_key, version, occurred_at, payload, metadata FROM outbox \
               WHERE seq = 11";
    site.world.execute("DELETE FROM outbox WHERE seq = 12").await;
    site.world.execute(sql).await;
    site.world.execute("DELETE FROM outbox_pending WHERE shard < 16 AND seq = 12").await;
    clock.advance(Duration::from_mins(2));
    // Events without lights: nobody waits for them to arrive.
    site.world.emit("switch.turned", (0..3).map(|number| (format!("key {number}"), 1))).await;
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    let relay = check(&run, "relay");
    assert_eq!((kinds(relay), relay.lagging), (vec![("event not relayed", 1)], 3), "{run:?}");
    let light = site.world.rows("SELECT aggregate_id, seq FROM outbox WHERE seq = 5").await.remove(0).0;
    let names = ["key 0", "key 1", "key 2"].map(str::to_owned).into_iter().chain([light]);
    assert_eq!(waiting(&site).await, names.collect::<BTreeSet<_>>());
    let late = site.world.rows("SELECT LOWER(HEX(event_id)), seq FROM outbox WHERE seq = 5").await.remove(0).0;
    assert_eq!(relay.examples[0].subject.replace('-', ""), format!("event {late}"));
    let found = check(&run, "log");
    assert_eq!(kinds(found), [("record missing", 1), ("record without event", 1)], "{run:?}");
    assert_eq!(found.examples[0].subject, "event 00112233-4455-6677-8899-aabbccddeeff");
    let relay = site.relay().unwrap();
    running.settle().await;
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((check(&run, "relay").differences, check(&run, "relay").lagging), (0, 0), "{run:?}");
    running.stop().await;
    relay.stop().await;
}

async fn what_the_log_lacks_has_twice_or_has_from_elsewhere_is_found_exactly(engine: Engine) {
    let site = Site::on(engine).await;
    let (relay, running) = (site.relay().unwrap(), site.start());
    let events =
        site.world.events("switch.turned", (0..500).map(|number| (format!("key {}", number % 40), number + 1)));
    let mut tx = site.world.db.write(Durability::Full).await.unwrap();
    outbox::emit(tx.conn(), events.clone()).await.unwrap();
    tx.commit().await.unwrap();
    running.settle().await;
    relay.stop().await;
    let reconciler = site.reconciler(options());
    let clean = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!((clean.state, clean.differences, clean.lagging), (State::Done, 0, 0), "{clean:?}");
    assert_eq!((check(&clean, "log").rows, check(&clean, "log").shards_differing), (500, 0));

    // The relay has noted number 50: what is there now was never sent, and what was sent has no event any more.
    let sql = "INSERT INTO outbox (seq, event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, \
               version, occurred_at, payload, metadata) SELECT 50, 0x00112233445566778899aabbccddeeff, event_type, 1, \
               aggregate_type, aggregate_id, event_key, version, occurred_at, payload, metadata FROM outbox \
               WHERE seq = 49";
    site.world.execute("DELETE FROM outbox WHERE seq = 50").await;
    site.world.execute(sql).await;
    site.world.execute("UPDATE outbox SET version = 1000 WHERE seq = 60").await;
    // Records that are older than the first event that is left may be of events that retention has removed.
    site.world.execute("UPDATE outbox SET occurred_at = occurred_at - 1000 WHERE seq = 1").await;
    let broker = site.broker.as_ref().unwrap();
    let foreign = site.world.event("switch.turned", "key 1", 7);
    tokio::task::block_in_place(|| {
        broker.append([foreign.clone(), events[70].clone()]);
        broker.append_raw("switch", b"key 2", b"no event");
    });
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    let found = check(&run, "log");
    assert_eq!(
        kinds(found),
        [
            ("record differs", 1),
            ("record doubled", 1),
            ("record missing", 1),
            ("record that is no event", 1),
            ("record without event", 2),
        ],
        "{run:?}"
    );
    let of = |kind: &str| -> Vec<&str> {
        found.examples.iter().filter(|example| example.kind == kind).map(|example| &*example.subject).collect()
    };
    assert_eq!(of("record missing"), ["event 00112233-4455-6677-8899-aabbccddeeff"]);
    assert_eq!(of("record doubled"), [format!("event {}", events[70].id)]);
    assert_eq!(of("record differs"), [format!("event {}", events[59].id)]);
    assert!(of("record without event").contains(&&*format!("event {}", foreign.id)));
    assert!(of("record without event").contains(&&*format!("event {}", events[49].id)));
    assert!(found.note.as_ref().unwrap().contains("rebuild"), "it says what is to be done");
    assert_eq!((found.lagging, run.repair.state), (0, RepairState::None), "events do not repair a log");
    running.stop().await;
}

#[tokio::test]
async fn an_event_that_was_removed_from_the_outbox_is_found() {
    let site = Arc::new(Site::on(Engine::Sqlite).await);
    let running = site.start();
    site.turn(0..40).await;
    running.settle().await;
    let reconciler = site.reconciler(options());
    assert_eq!(reconciler.run_now(None, &actor()).await.unwrap().differences, 0);
    site.world.execute("DELETE FROM outbox WHERE seq IN (7, 8, 40)").await;
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    let found = check(&run, "log");
    assert_eq!(kinds(found), [("event missing", 3)]);
    let subjects: Vec<_> = found.examples.iter().map(|example| example.subject.as_str()).collect();
    assert_eq!(subjects, ["offset 7", "offset 8", "offset 40"]);
    // What retention takes from the front is not missed.
    site.world.execute("DELETE FROM outbox WHERE seq < 20").await;
    let run = reconciler.run_now(None, &actor()).await.unwrap();
    assert_eq!(kinds(check(&run, "log")), [("event missing", 1)]);
    running.stop().await;
}
