//! A key that the relay holds back is left out of a repair: its events would only wait there too.

use tidings_backbone::{
    log::Log,
    reconcile::{RepairState, State},
};
use tidings_testkit::{database::Engine, on_every_server};

use super::{
    lights,
    site::{NAME, Site, actor, options},
};
use crate::kafka::eventually;

on_every_server!(
    a_repair_leaves_out_a_key_that_the_relay_holds_back_and_names_it,
    a_repair_leaves_out_what_polling_relays_hold_back_too,
);

async fn a_repair_leaves_out_a_key_that_the_relay_holds_back_and_names_it(engine: Engine) {
    is_left_out(Site::on(engine).await).await;
}

async fn a_repair_leaves_out_what_polling_relays_hold_back_too(engine: Engine) {
    is_left_out(Site::on(engine).await.polled()).await;
}

async fn is_left_out(site: Site) {
    let (relay, running) = (site.relay().unwrap(), site.start());
    site.turn(0..9).await;
    let Log::Kafka(log) = &site.world.log else { panic!("a relay fills Kafka") };
    // Polling relays make their table beside whoever looks.
    eventually("the relay", async || log.relayed().await.is_ok_and(|relayed| relayed.behind == 0)).await;
    running.settle().await;
    let broken = "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, \
                  version, occurred_at, payload, metadata) \
                  SELECT RANDOM_BYTES(16), event_type, schema_version, aggregate_type, aggregate_id, event_key, \
                  version, occurred_at, 'no JSON', metadata FROM outbox WHERE event_key = 'light 5'";
    site.world.execute(broken).await;
    eventually("the key is held back", async || log.relayed().await.is_ok_and(|relayed| relayed.behind == 0)).await;
    site.world.execute("UPDATE light_view SET version = 77 WHERE name IN ('light 5', 'light 6')").await;

    let reconciler = site.reconciler(options());
    let run = reconciler.run_now(Some(NAME), &actor()).await.unwrap();
    assert_eq!((run.state, run.differences, run.left_out()), (State::Done, 2, 0), "{run:?}");
    let run = reconciler.repair_now(&run.id, &actor()).await.unwrap();
    assert_eq!((run.repair.state, run.repair.events, run.left_out()), (RepairState::Done, 1, 1), "{run:?}");
    assert!(lights(&run).left_out_keys.iter().eq(["light 5"]), "{run:?}");
    running.settle().await;
    let run = reconciler.run_now(Some(NAME), &actor()).await.unwrap();
    assert_eq!((run.differences, lights(&run).examples[0].subject.as_str()), (1, "light 5"), "{run:?}");
    let events = site.world.rows("SELECT event_key, version FROM outbox").await;
    assert_eq!(events.len(), 9 + 1 + 1, "{events:?}");
    running.stop().await;
    relay.stop().await;
}
