//! What it costs to keep when projectors passed what: the path with the trail beside the path without it.

use tidings_backbone::projector::Options;
use tidings_community::relation::facts::Command;

use crate::{
    place::Place,
    stamped::{self, Projecting},
    table::Table,
    workload::{Bench, follows},
};

/// Pairs of rounds, in turns.
const ROUNDS: usize = 4;
const ROUND_EVENTS: usize = 60_000;

/// One way, and the seconds it has taken so far.
struct Way {
    bench: Bench,
    keeps_trail: bool,
    catching_up: f64,
    whole_path: f64,
}

pub(crate) async fn measure(table: &mut Table, place: Place) {
    let mut ways = Vec::new();
    for keeps_trail in [true, false] {
        ways.push(Way { bench: Bench::new(place).await, keeps_trail, catching_up: 0.0, whole_path: 0.0 });
    }
    let relays: Vec<_> = ways.iter().map(|way| way.bench.relay()).collect();
    let commands = follows(2 * ROUNDS * ROUND_EVENTS, 5);
    for (round, commands) in commands.chunks(2 * ROUND_EVENTS).enumerate() {
        // Whoever comes first in a pair finds another machine than who comes second.
        ways.rotate_left(round % 2);
        for way in &mut ways {
            way.round(commands).await;
        }
        ways.rotate_right(round % 2);
    }
    drop(relays);
    let [with, without] = [&ways[0], &ways[1]];
    let rate = |seconds: f64| (ROUNDS * ROUND_EVENTS) as f64 / seconds;
    let against = |seconds: f64| ("without it", rate(seconds));
    table.ratio("projector catching up, with its trail", rate(with.catching_up), against(without.catching_up), "0.95x");
    table.ratio("writes until all is visible, with it", rate(with.whole_path), against(without.whole_path), "0.95x");
}

impl Way {
    /// Half of the follows wait for the projector, the others come while it runs.
    async fn round(&mut self, commands: &[Command]) {
        let (before, beside) = commands.split_at(ROUND_EVENTS);
        self.write(before).await;
        stamped::relayed(&self.bench).await;
        let options = Options { keeps_trail: self.keeps_trail, ..Options::default() };
        let projecting = Projecting::start_with(&self.bench, options);
        projecting.wait_for(ROUND_EVENTS).await;
        self.catching_up += projecting.seconds();
        let start = std::time::Instant::now();
        self.write(beside).await;
        projecting.wait_for(2 * ROUND_EVENTS).await;
        self.whole_path += start.elapsed().as_secs_f64();
        projecting.stop().await;
    }

    async fn write(&self, commands: &[Command]) {
        for chunk in commands.chunks(4_096) {
            self.bench.ledgers.relations.submit_all(chunk.iter().cloned()).await;
        }
    }
}
