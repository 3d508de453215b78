//! What is kept of when projectors passed what: little, and for a time.

use std::time::Duration;

use tidings_backbone::{
    journey::State,
    projector::Options,
    retention::{self, Retention},
};
use tidings_testkit::{database::Engine, on_every_engine};

use super::site::{Site, quick_and_dead};
use crate::world::{Fault, Recorder};

on_every_engine!(
    a_busy_projector_leaves_one_row_a_tick_however_many_batches_it_commits,
    what_was_applied_late_is_never_told_at_the_time_of_its_parking_also_when_the_trail_has_gone,
    an_old_trail_goes_in_batches_and_the_young_stays,
);

async fn a_busy_projector_leaves_one_row_a_tick_however_many_batches_it_commits(engine: Engine) {
    let site = Site::on(engine).await;
    let running = site.start(&Recorder::new("recorder"), Options { batch_events_max: 1, ..quick_and_dead() });
    for version in 0..5 {
        site.emit(std::array::from_fn::<_, 20, _>(|number| ("a", version * 20 + number as u64 + 1))).await;
    }
    running.settle().await;
    let parts = if engine == Engine::Sqlite { 1 } else { 3 };
    let rows = "SELECT COUNT(*) FROM projector_trail";
    assert!(site.count(rows).await <= parts, "{} rows of one tick", site.count(rows).await);
    for ticks in 1..=4 {
        site.clock.advance(Duration::from_millis(100));
        site.emit([("a", 100 + ticks), ("a", 200 + ticks)]).await;
        running.settle().await;
    }
    assert!(site.count(rows).await <= parts + 4, "{} rows of five ticks", site.count(rows).await);
    running.stop().await;
}

async fn what_was_applied_late_is_never_told_at_the_time_of_its_parking_also_when_the_trail_has_gone(engine: Engine) {
    let site = Site::on(engine).await;
    let recorder = Recorder::new("recorder");
    // Once in hope and once with care.
    recorder.fail("a", 1, Fault::Error, 2);
    let running = site.start(&recorder, quick_and_dead());
    let [late] = site.emit([("a", 1)]).await;
    site.until_state(&running, late.id, State::Retrying).await;
    site.clock.advance(Duration::from_secs(2));
    site.nudge().await;
    let applied_at = site.clock.now();
    assert_eq!(site.until_state(&running, late.id, State::Applied).await.at, Some(applied_at));

    let options = retention::Options {
        keep_events: None,
        keep_answers: Duration::from_hours(1),
        keep_audit: None,
        keep_trail: Duration::from_secs(2),
        round_gap: Duration::from_hours(1),
        projectors: vec!["recorder"],
    };
    let retention = Retention::new(site.db.clone(), site.clock.clone(), options);
    site.clock.advance(Duration::from_secs(1));
    retention.round().await.unwrap();
    assert_eq!(site.count("SELECT COUNT(*) FROM projector_trail").await, 0, "it was passed three seconds ago");
    assert_eq!(site.stage(&running, late.id).await.at, Some(applied_at));
    site.clock.advance(Duration::from_secs(2));
    retention.round().await.unwrap();
    let stage = site.stage(&running, late.id).await;
    assert_eq!((stage.state, stage.at), (State::Applied, None), "its position stands since it was parked");
    running.stop().await;
}

async fn an_old_trail_goes_in_batches_and_the_young_stays(engine: Engine) {
    let site = Site::on(engine).await;
    let now = site.clock.now().0;
    for (table, columns) in [("projector_trail", "passed_at, left_at"), ("applied_late", "applied_at")] {
        let mut tx = site.db.write(tidings_backbone::Durability::Full).await.unwrap();
        let rows = (0..11_000_i64).map(|number| {
            let at = now - if number % 11 == 0 { 0 } else { 7_200_000 };
            ["recorder".into(), "elsewhere/0".into(), number.into(), at.into(), at.into()]
        });
        let rows: Vec<[tidings_backbone::db::Value; 5]> = rows.collect();
        if table == "projector_trail" {
            let head = format!("INSERT INTO {table} (projector, part, log_offset, {columns}) VALUES");
            tx.conn().execute_rows("storing", &head, rows, "").await.unwrap();
        } else {
            let rows = rows.into_iter().map(|[projector, part, offset, at, _]| [projector, part, offset, at]);
            let head = format!("INSERT INTO {table} (projector, part, log_offset, {columns}) VALUES");
            tx.conn().execute_rows("storing", &head, rows.collect(), "").await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    let options = retention::Options {
        keep_events: None,
        keep_answers: Duration::from_hours(1),
        keep_audit: None,
        keep_trail: Duration::from_hours(1),
        round_gap: Duration::from_hours(1),
        projectors: vec!["recorder"],
    };
    let mut commits = site.db.commits();
    let before = *commits.borrow_and_update();
    Retention::new(site.db.clone(), site.clock.clone(), options).round().await.unwrap();
    assert!(*commits.borrow() - before >= 6, "each batch is a commit of its own");
    for table in ["projector_trail", "applied_late"] {
        let mut tx = site.db.read().await.unwrap();
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let row = tx.conn().fetch_optional("counting", sql, vec![]).await.unwrap().unwrap();
        assert_eq!(row.int(0).unwrap(), 1_000);
    }
}
