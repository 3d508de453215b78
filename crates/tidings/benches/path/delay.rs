//! From commit to visible, at a twentieth and at half of the load that the whole path bears.

use std::time::{Duration, Instant};

use tidings_community::relation::facts::Command;

use crate::{
    place::Place,
    stamped::{self, Projecting},
    table::Table,
    workload::{Bench, follows},
};

const FULL_LOAD: usize = 100_000;
const SECONDS: f64 = 5.0;
/// Commands that arrive together.
const BURST_GAP: Duration = Duration::from_millis(2);

pub(crate) async fn measure(table: &mut Table, place: Place) {
    let bench = Bench::new(place).await;
    let _relay = bench.relay();
    let commands = follows(1 + FULL_LOAD * 3, 4);
    // The first one goes all the way alone, so that nobody joins or connects while it is measured.
    let (first, commands) = commands.split_at(1);
    bench.ledgers.relations.submit_all(first.iter().cloned()).await;
    stamped::relayed(&bench).await;
    let projecting = Projecting::start(&bench);
    projecting.wait_for(1).await;

    // Full load: writes and all that follows from them together, until all is visible.
    let (full, half) = commands.split_at(FULL_LOAD);
    let start = Instant::now();
    for chunk in full.chunks(4_096) {
        bench.ledgers.relations.submit_all(chunk.iter().cloned()).await;
    }
    projecting.wait_for(1 + FULL_LOAD).await;
    let sustained = FULL_LOAD as f64 / start.elapsed().as_secs_f64();

    let way = place.target("ledger and projector", "ledger, relay, Kafka and projector, all on the same cores");
    let load = |part: &str| format!("{part} of {sustained:.0} follows/s through {way}");
    let (few, half) = half.split_at(half.len() / 4);
    let (_, delays) = at_rate(&bench, &projecting, few, sustained / 20.0).await;
    table.figure("commit to visible at little load", percentiles(delays), load("a twentieth"), "–");
    let (writes, delays) = at_rate(&bench, &projecting, half, sustained / 2.0).await;
    let target = place.target("p99 < 10 ms", "p99 < 50 ms");
    table.figure("commit to visible at half load", percentiles(delays), load("half"), target);
    table.figure("durable write at half load", percentiles(writes), load("half"), "p99 < 20 ms");
    projecting.stop().await;
}

/// Follows that arrive at `rate` a second for some seconds: for each, the milliseconds from asking to the
/// durable answer, and from there to being visible.
async fn at_rate(bench: &Bench, projecting: &Projecting, commands: &[Command], rate: f64) -> (Vec<f64>, Vec<f64>) {
    let count = ((rate * SECONDS) as usize).min(commands.len());
    let per_burst = (rate * BURST_GAP.as_secs_f64()).ceil() as usize;
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(per_burst as f64 / rate));
    let before = projecting.visible().len();
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
    projecting.wait_for(before + count).await;
    let visible = projecting.visible();
    let delay = |(pair, at): &(String, Instant)| visible[pair].saturating_duration_since(*at).as_secs_f64() * 1_000.0;
    (writes, committed.iter().map(delay).collect())
}

fn percentiles(mut millis: Vec<f64>) -> String {
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
    format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", at(0.5), at(0.99), at(1.0))
}
