//! The path of a follow, measured: each figure is a ratio against a ceiling or a peer of the same run.
//!
//! `scripts/bench` runs it in a release build and prints one table: of the embedded mode, or with
//! `--mariadb` or `--mysql` of the distributed one. The names of measurements (`writes`, `projector`,
//! `delay`, `process`, `telemetry`, `journey`) choose some of them. Nothing here asserts a time.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's monotonic clock")]

mod bare;
mod delay;
mod journey;
mod place;
mod process;
mod projector;
mod stamped;
mod table;
mod telemetry;
mod workload;
mod writes;

use crate::{place::Plan, table::Table};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    if let Some(folder) = telemetry::folder_of_bare_server(std::env::args()) {
        return telemetry::serve_bare(&folder);
    }
    let plan = Plan::parse(std::env::args().skip(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut table = Table::default();
    runtime.block_on(async {
        if plan.wants("writes") {
            writes::measure(&mut table, plan.place).await;
        }
        if plan.wants("projector") {
            projector::measure(&mut table, plan.place).await;
        }
        if plan.wants("delay") {
            delay::measure(&mut table, plan.place).await;
        }
        if plan.wants("process") {
            process::measure(&mut table, plan.place).await;
        }
        if plan.wants("telemetry") {
            telemetry::measure(&mut table, plan.place).await;
        }
        if plan.wants("journey") {
            journey::measure(&mut table, plan.place).await;
        }
    });
    table.print();
}
