//! From commit to visible, at a twentieth and at half of the load that the whole path bears.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tidings_backbone::{
    Conn,
    log::Recorded,
    projector::{ApplyError, Handle, Options, Projector, Runtime},
};
use tidings_community::relation::{facts::Command, projection::RelationProjector};
use tokio_util::sync::CancellationToken;

use crate::{
    table::Table,
    workload::{Bench, follows},
};

const FULL_LOAD: usize = 100_000;
const SECONDS: f64 = 5.0;
/// Commands that arrive together.
const BURST_GAP: Duration = Duration::from_millis(2);

/// The relation projector, with the moment at which each event became visible.
#[derive(Default)]
struct Stamped {
    inner: RelationProjector,
    visible: Mutex<HashMap<String, Instant>>,
}

#[async_trait]
impl Projector for Stamped {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn event_types(&self) -> &'static [&'static str] {
        self.inner.event_types()
    }

    async fn apply(&self, batch: &[Recorded], conn: Conn<'_>) -> Result<(), ApplyError> {
        self.inner.apply(batch, conn).await
    }

    async fn committed(&self, batch: &[Recorded]) {
        let now = Instant::now();
        let mut visible = self.visible.lock().unwrap();
        visible.extend(batch.iter().map(|recorded| (recorded.event.aggregate_id.clone(), now)));
    }
}

pub(crate) async fn measure(table: &mut Table) {
    let bench = Bench::new().await;
    let stamped = Arc::new(Stamped::default());
    let runtime = Runtime::new(bench.store.db.clone(), bench.store.log(), bench.store.clock.clone())
        .with(Arc::clone(&stamped) as Arc<dyn Projector>, Options::default());
    let (handle, shutdown) = (runtime.handle(), CancellationToken::new());
    let running = tokio::spawn(runtime.run(shutdown.clone()));

    // Full load: writes and projector together, until all is visible.
    let commands = follows(FULL_LOAD * 3, 4);
    let (full, half) = commands.split_at(FULL_LOAD);
    let start = Instant::now();
    for chunk in full.chunks(4_096) {
        bench.ledgers.relations.submit_all(chunk.iter().cloned()).await;
    }
    assert!(handle.settle(Duration::from_mins(10)).await.unwrap());
    let sustained = FULL_LOAD as f64 / start.elapsed().as_secs_f64();

    let load = |part: &str| format!("{part} of {sustained:.0} follows/s through ledger and projector");
    let (few, half) = half.split_at(half.len() / 4);
    let (_, delays) = at_rate(&bench, &stamped, &handle, few, sustained / 20.0).await;
    table.figure("commit to visible at little load", percentiles(delays), load("a twentieth"), "–");
    let (writes, delays) = at_rate(&bench, &stamped, &handle, half, sustained / 2.0).await;
    table.figure("commit to visible at half load", percentiles(delays), load("half"), "p99 < 10 ms");
    table.figure("durable write at half load", percentiles(writes), load("half"), "p99 < 20 ms");
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

/// Follows that arrive at `rate` a second for some seconds: for each, the milliseconds from asking to the
/// durable answer, and from there to being visible.
async fn at_rate(
    bench: &Bench,
    stamped: &Stamped,
    handle: &Handle,
    commands: &[Command],
    rate: f64,
) -> (Vec<f64>, Vec<f64>) {
    let count = ((rate * SECONDS) as usize).min(commands.len());
    let per_burst = (rate * BURST_GAP.as_secs_f64()).ceil() as usize;
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(per_burst as f64 / rate));
    let mut answers = Vec::with_capacity(count);
    for burst in commands[..count].chunks(per_burst) {
        ticks.tick().await;
        for command in burst {
            let (ledger, command) = (bench.ledgers.relations.clone(), command.clone());
            answers.push(tokio::spawn(async move {
                let pair = format!("{}:{}", command.from, command.to);
                let asked = Instant::now();
                ledger.submit(command, None).await.unwrap().unwrap();
                (pair, asked, Instant::now())
            }));
        }
    }
    let (mut writes, mut committed) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for answer in answers {
        let (pair, asked, at) = answer.await.unwrap();
        writes.push(at.duration_since(asked).as_secs_f64() * 1_000.0);
        committed.push((pair, at));
    }
    assert!(handle.settle(Duration::from_mins(10)).await.unwrap());
    let visible = stamped.visible.lock().unwrap();
    let delay = |(pair, at): &(String, Instant)| visible[pair].saturating_duration_since(*at).as_secs_f64() * 1_000.0;
    (writes, committed.iter().map(delay).collect())
}

fn percentiles(mut millis: Vec<f64>) -> String {
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
    format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", at(0.5), at(0.99), at(1.0))
}
