//! The reconciliation: what it finds, and that it is done at all.

use serde_json::Value;
use tidings_testkit::World;

use super::{Section, Watch, until, until_metric, until_rebuilt};
use crate::{database::Hand, embedded};

/// The newest run.
async fn last_run(world: &World) -> Value {
    world.admin().await.read("/v1/admin/reconciliations").await["items"][0].clone()
}

#[tokio::test]
async fn reconciliation_drift() {
    let it = Section::of("reconciliation-drift");
    let world = embedded(&[]).await;
    world.register(1..=4).await;
    for user in 2..=4 {
        world.user(user).await.follow(1).await;
    }
    world.drain().await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("DELETE FROM follower").await;
    assert_eq!(world.output(&["reconcile"]).await.status.code(), Some(1));
    until_metric(&world, "tidings_reconciliation_differences", |found| found == 3.0).await;
    watch.look(&world, 10).await;
    watch.fires(&["TidingsReconciliationDrift"]);

    let run = last_run(&world).await["id"].as_str().unwrap().to_owned();
    assert!(it.run(&world, "tidings reconcile list", &[]).await.contains(&run));
    let shown = it.output(&world, "tidings reconcile show RUN_ID", &[("RUN_ID", &run)]).await;
    let said = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.code() == Some(1) && said.contains("relation.mirror"), "{said}");
    it.run(&world, "tidings reconcile --repair", &[]).await;
    until_metric(&world, "tidings_reconciliation_differences", |found| found == 0.0).await;
    world.verify().await;
    hand.run("DELETE FROM follower").await;
    it.run(&world, "tidings rebuild start relation", &[]).await;
    until_rebuilt(&world).await;
    world.verify().await;
    watch.look(&world, 30).await;
    watch.is_quiet(&["TidingsReconciliationDrift"]);
}

#[tokio::test]
async fn reconciliation_late() {
    let it = Section::of("reconciliation-late");
    let world = embedded(&[]).await;
    world.register(1..=2).await;
    world.user(1).await.follow(2).await;
    world.drain().await;
    world.run(&["reconcile"]).await;
    let mut watch = Watch::default();
    watch.look(&world, 10).await;
    // It was three days ago, and the run that is due now does not find what it asks for.
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("ALTER TABLE follower RENAME TO follower_away").await;
    hand.run("UPDATE reconciliation SET started_at = started_at - 259200000, finished_at = finished_at - 259200000")
        .await;
    until("a run to fail", async || last_run(&world).await["state"] == "failed").await;
    until_metric(&world, "tidings_reconciliation_age_seconds", |age| age > 200_000.0).await;
    watch.look(&world, 30).await;
    watch.fires(&["TidingsReconciliationLate"]);

    let run = last_run(&world).await["id"].as_str().unwrap().to_owned();
    assert!(it.run(&world, "tidings reconcile list", &[]).await.contains("failed"));
    let shown = it.output(&world, "tidings reconcile show RUN_ID", &[("RUN_ID", &run)]).await;
    let said = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.code() == Some(2) && said.contains("follower"), "{said}");
    hand.run("ALTER TABLE follower_away RENAME TO follower").await;
    it.run(&world, "tidings reconcile", &[]).await;
    until_metric(&world, "tidings_reconciliation_age_seconds", |age| age < 100_000.0).await;
    watch.look(&world, 30).await;
    watch.is_quiet(&["TidingsReconciliationLate"]);
}
