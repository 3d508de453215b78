//! The path of a follow, measured: each figure is a ratio against a ceiling or a peer of the same run.
//!
//! `scripts/bench` runs it in a release build and prints one table. Nothing here asserts a time.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's monotonic clock")]

mod delay;
mod process;
mod projector;
mod table;
mod workload;
mod writes;

use crate::table::Table;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut table = Table::default();
    runtime.block_on(async {
        writes::measure(&mut table).await;
        projector::measure(&mut table).await;
        delay::measure(&mut table).await;
        process::measure(&mut table).await;
    });
    table.print();
}
