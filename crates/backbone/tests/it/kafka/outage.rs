//! Brokers that were away, for those who only look.

use tidings_backbone::log::Log;

use super::{Broker, TYPE, broker::eventually, events};
use crate::{sinks::outage::Server, world::World};

#[tokio::test(flavor = "multi_thread")]
async fn a_look_is_answered_after_an_outage_that_nobody_looked_at() {
    let (server, address) = Server::start("looks");
    let broker = Broker::on(address, 1).await;
    let world = World::on_kafka(&broker).await;
    broker.append(world.events(TYPE, events(3, 1..=1)));
    let Log::Kafka(log) = &world.log else { unreachable!("it is on Kafka") };
    for outage in [&[][..], &["restart"], &["kill", "up"]] {
        outage.iter().for_each(|command| drop(server.say(&[command, "kafka"])));
        // A commit shows a moment after it was acknowledged, and a broker finds its end a moment after its start.
        eventually("the events", async || {
            let positions = world.log.parts(&[TYPE]).into_iter().map(|part| (part, world.log.before_first()));
            let behind = world.log.behind(positions.collect()).await.unwrap();
            behind.iter().all(|part| part.events > 0 && part.oldest.is_some())
        })
        .await;
        assert_eq!(log.relayed().await.unwrap().checkpoint, None);
    }
}
