//! The relay catching up, measured: each figure is a ratio against a ceiling or a peer of the same run.
//!
//! `scripts/bench relay` starts servers, runs it in a release build and prints one table. Nothing here
//! asserts a time. `--mysql` reads from MySQL instead of MariaDB; `--peers` sets Debezium's embedded
//! engine beside it; `--rows N` and `--rounds N` make it shorter. Everything is measured once a round,
//! one thing after the other, and the best of the rounds counts, for the relay and its peers alike.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's monotonic clock")]

mod ceilings;
mod child;
mod debezium;
mod measure;
mod outbox;
mod process;
mod report;
mod table;

use crate::measure::Plan;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // As the product has it.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [mode, task] if mode == child::MODE => runtime.block_on(child::run(task)),
        _ => {
            let plan = Plan::parse(&arguments);
            let found = runtime.block_on(measure::all(&plan));
            report::print(&plan, &found);
        }
    }
}
