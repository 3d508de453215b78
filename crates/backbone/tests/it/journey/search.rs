//! Looking for an event that the log alone may still have, where there is too much to look through.

use std::sync::Arc;

use futures::future::join_all;
use tidings_backbone::{
    Error, EventIds,
    limits::JOURNEY_RECORDS_MAX,
    projector::{Options, Projector, Runtime},
};

use crate::{
    kafka::Broker,
    world::{Recorder, World},
};

/// Those who ask at once.
const CALLERS: usize = 40;

#[tokio::test]
async fn a_search_that_gave_up_says_so_and_who_asks_too_often_is_not_kept_waiting() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    broker.append_noise(JOURNEY_RECORDS_MAX + 1);
    let recorder: Arc<dyn Projector> = Recorder::new("recorder");
    let runtime = Runtime::new(world.db.clone(), world.log.clone(), world.clock.clone());
    let handle = runtime.with(recorder, Options::default()).handle();
    let never = EventIds::from_seed(99).next(world.clock.now());
    let told = join_all((0..CALLERS).map(|_| handle.journey(never))).await;
    let count = |is: fn(&Error) -> bool| told.iter().filter(|told| told.as_ref().is_err_and(is)).count();
    let gave_up = count(|error| matches!(error, Error::SearchGaveUp));
    let busy = count(|error| matches!(error, Error::SearchBusy));
    assert!(gave_up > 0 && busy > 0 && gave_up + busy == CALLERS, "{told:?}");
}
