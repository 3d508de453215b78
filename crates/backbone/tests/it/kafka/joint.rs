//! Batches of several partitions in one transaction.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use tidings_backbone::{
    Conn,
    log::Recorded,
    projector::{ApplyError, Options, Projector, Runtime, Target},
};
use tokio_util::sync::CancellationToken;

use super::{Broker, TYPE, all, events};
use crate::world::{PATIENCE, Recorder, Running, World};

/// Records as [`Recorder`] does, and sees whether a batch has events of several partitions: those have offsets
/// of their own, so two events of one batch with the same offset are of two.
struct Watching {
    inner: Arc<Recorder>,
    was_joint: AtomicBool,
}

#[async_trait]
impl Projector for Watching {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.inner.event_types()
    }

    async fn apply(&self, batch: &[Recorded], target: Target, conn: Conn<'_>) -> Result<(), ApplyError> {
        let mut offsets = HashSet::new();
        if !batch.iter().all(|recorded| offsets.insert(recorded.offset)) {
            self.was_joint.store(true, Ordering::SeqCst);
        }
        self.inner.apply(batch, target, conn).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gathers_in_several_partitions_is_applied_in_one_transaction() {
    let broker = Broker::new(3).await;
    let world = World::on_kafka(&broker).await;
    let watching = Arc::new(Watching { inner: Recorder::new("recorder"), was_joint: AtomicBool::new(false) });
    let runtime = Runtime::new(world.db.clone(), world.log.clone(), world.clock.clone())
        .with(Arc::clone(&watching) as Arc<dyn Projector>, Options::default());
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let running = Running { handle, task: tokio::spawn(runtime.run(shutdown.clone())), shutdown };
    let mut versions = 0;
    let rounds = async {
        while !watching.was_joint.load(Ordering::SeqCst) {
            versions += 1;
            broker.append(world.events(TYPE, events(30, versions..=versions)));
            running.settle().await;
        }
    };
    tokio::time::timeout(PATIENCE, rounds).await.expect("no batch ever had events of two partitions");
    running.stop().await;
    assert_eq!(world.applied_by_key().await, all(30, i64::try_from(versions).unwrap()));
}
