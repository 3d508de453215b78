//! What events are about that wait is told while the projector, or the relay, stands still.

use std::{collections::BTreeSet, time::Duration};

use tidings_backbone::{log::Log, projector::Generation, reconcile::Comparison};
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{NAME, Site, TURNED};
use crate::kafka::eventually;

on_every_engine!(what_waits_is_told_whoever_stands_still);

pub(super) async fn waiting(site: &Site) -> BTreeSet<String> {
    let (db, log, generation) = (&site.world.db, &site.world.log, Generation::FIRST);
    let patience = Duration::ZERO;
    let comparison = Comparison { db, log, generation, identity: NAME, event_types: &[TURNED], patience };
    let waiting = comparison.waiting().await.unwrap().unwrap();
    waiting.iter().map(|(_, aggregate)| aggregate.to_owned()).collect()
}

async fn what_waits_is_told_whoever_stands_still(engine: Engine) {
    let site = Site::on(engine).await;
    let named = |lights: &[i64]| lights.iter().map(|light| format!("light {light}")).collect::<BTreeSet<_>>();
    let relay = site.relay();
    site.turn(0..2).await;
    assert_eq!(waiting(&site).await, named(&[0, 1]), "of who has yet to begin");
    let running = site.start();
    site.turn(1..20).await;
    running.settle().await;
    assert_eq!(waiting(&site).await, named(&[]));
    running.stop().await;
    // Whether they are in the log or on their way to it.
    site.turn(3..5).await;
    assert_eq!(waiting(&site).await, named(&[3, 4]));
    if let Some(relay) = relay {
        let Log::Kafka(log) = &site.world.log else { panic!("a relay fills Kafka") };
        eventually("the relay", async || log.relayed().await.unwrap().behind == 0).await;
        assert_eq!(waiting(&site).await, named(&[3, 4]));
        relay.stop().await;
    }
    site.turn(7..8).await;
    assert_eq!(waiting(&site).await, named(&[3, 4, 7]));
    let running = site.start();
    if site.broker.is_some() {
        eventually("what is in the log", async || waiting(&site).await == named(&[7])).await;
    }
    let relay = site.relay();
    running.settle().await;
    assert_eq!(waiting(&site).await, named(&[]));
    running.stop().await;
    if let Some(relay) = relay {
        relay.stop().await;
    }
}
