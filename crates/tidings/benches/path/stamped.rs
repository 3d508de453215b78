//! The relation projector at work, and the moment at which each event became visible.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tidings_backbone::{
    Conn,
    log::{Log, Recorded},
    projector::{ApplyError, Options, Projector, Runtime, Target},
};
use tidings_community::relation::projection::RelationProjector;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::workload::Bench;

/// What never comes to an end ends the benchmark.
const PATIENCE: Duration = Duration::from_mins(5);

struct Stamped {
    inner: Arc<dyn Projector>,
    first: OnceLock<Instant>,
    visible: Mutex<HashMap<String, Instant>>,
    count: watch::Sender<usize>,
}

#[async_trait]
impl Projector for Stamped {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.inner.event_types()
    }

    async fn apply(&self, batch: &[Recorded], target: Target, conn: Conn<'_>) -> Result<(), ApplyError> {
        self.first.get_or_init(Instant::now);
        self.inner.apply(batch, target, conn).await
    }

    async fn committed(&self, batch: &[Recorded]) {
        let now = Instant::now();
        {
            let mut visible = self.visible.lock().unwrap();
            visible.extend(batch.iter().map(|recorded| (recorded.event.aggregate_id.clone(), now)));
            self.count.send_replace(visible.len());
        }
        self.inner.committed(batch).await;
    }
}

/// A running projector.
pub(crate) struct Projecting {
    stamped: Arc<Stamped>,
    shutdown: CancellationToken,
    running: JoinHandle<tidings_backbone::Result<()>>,
}

impl Projecting {
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::start_with(bench, Options::default())
    }

    pub(crate) fn start_with(bench: &Bench, options: Options) -> Self {
        let inner: Arc<dyn Projector> = match &bench.store.hot {
            Some(hot) => Arc::new(RelationProjector.with_cache(hot.clone())),
            None => Arc::new(RelationProjector),
        };
        let stamped = Arc::new(Stamped {
            inner,
            first: OnceLock::new(),
            visible: Mutex::default(),
            count: watch::Sender::default(),
        });
        let runtime = Runtime::new(bench.store.db.clone(), bench.store.log(), bench.store.clock.clone())
            .with(Arc::clone(&stamped) as Arc<dyn Projector>, options);
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(runtime.run(shutdown.clone()));
        Self { stamped, shutdown, running }
    }

    /// Waits until so many pairs are visible.
    pub(crate) async fn wait_for(&self, pairs: usize) {
        let mut count = self.stamped.count.subscribe();
        let waiting = count.wait_for(|count| *count >= pairs);
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    }

    /// Seconds since it had its first event: joining a consumer group is no part of what it does with events.
    pub(crate) fn seconds(&self) -> f64 {
        self.stamped.first.get().unwrap().elapsed().as_secs_f64()
    }

    /// When each pair became visible.
    pub(crate) fn visible(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.stamped.visible.lock().unwrap()
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
    }
}

/// Waits until all that is committed is in the log; embedded it is.
pub(crate) async fn relayed(bench: &Bench) {
    let Log::Kafka(log) = bench.store.log() else { return };
    let waiting = async {
        // A topic that has just been made is not led by any broker for a moment.
        while !matches!(log.relayed().await, Ok(relayed) if relayed.behind == 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}
