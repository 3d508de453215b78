//! docs/runbook.md, done: each section's alert is brought about, its commands are run as they are written there,
//! and then the alert is over, by Prometheus' own reading of the rules and of what the processes tell.

mod alert;
mod api;
mod http;
mod ledger;
mod page;
mod parking;
mod processes;
mod projectors;
mod rebuilds;
mod receiver;
mod reconciliation;
mod services;
mod truth;

use serde_json::Value;
use tidings_testkit::World;

use self::{alert::Watch, page::Section, receiver::Receiver};
use crate::{until, until_metric};

/// Waits until some process tells this line.
async fn until_told(world: &World, line: &str) {
    until(line, async || world.metrics().await.iter().any(|(_, page)| page.lines().any(|told| told == line))).await;
}

/// Waits until the last rebuild is done, and readers have what it built.
async fn until_rebuilt(world: &World) {
    until("the rebuild to be done", async || {
        let status: Value = serde_json::from_str(&world.run(&["rebuild", "status", "--json"]).await).unwrap();
        let rebuild = &status["rebuilds"][0];
        assert_ne!(rebuild["state"], "failed", "{rebuild}");
        rebuild["state"] == "done"
    })
    .await;
}
