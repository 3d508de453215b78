//! Migrations run once, whoever runs them, and go on where a crash left them.

use std::time::Duration;

use futures::future::join_all;
use tidings_backbone::{
    Error,
    db::{BACKBONE_MIGRATIONS, Migration},
    parking,
};
use tidings_testkit::{
    database::{Database, Engine},
    on_every_engine, on_every_server,
};

use crate::world::{World, open};

on_every_engine!(
    several_processes_migrate_one_database_at_once,
    what_an_earlier_version_had_parked_is_there_and_can_be_chosen_and_told,
);
on_every_server!(
    another_text_under_the_same_number_is_refused,
    a_run_that_was_killed_at_any_moment_is_completed_by_the_next,
    a_statement_whose_outcome_was_lost_counts_as_done_if_it_is,
    a_table_of_somebody_else_is_never_taken_for_ours,
);

const TWO: &[Migration] = &[Migration {
    version: 90,
    name: "two",
    sqlite: "CREATE TABLE one (a BIGINT); CREATE TABLE two (a BIGINT);",
    mysql: "CREATE TABLE one (a BIGINT);\nCREATE TABLE two (a BIGINT);\nINSERT INTO missing VALUES (1);\n",
}];

async fn several_processes_migrate_one_database_at_once(engine: Engine) {
    let database = Database::new(engine).await;
    let handles = join_all((0..6).map(|_| open(&database.place))).await;
    for done in join_all(handles.iter().map(|db| db.migrate(BACKBONE_MIGRATIONS))).await {
        done.unwrap();
    }
    handles[0].migrate(BACKBONE_MIGRATIONS).await.unwrap();
}

async fn what_an_earlier_version_had_parked_is_there_and_can_be_chosen_and_told(engine: Engine) {
    let database = Database::new(engine).await;
    let db = open(&database.place).await;
    db.migrate(&BACKBONE_MIGRATIONS[..2]).await.unwrap();
    let mut tx = db.write(tidings_backbone::Durability::Full).await.unwrap();
    let id = "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c";
    for sql in [
        "INSERT INTO parked_key VALUES ('p', 'outbox/0', 'a', 1, 3, 5, 'broken', 77), ('p', 'outbox/0', 'b', 1, 1, 5, \
         'odd', 78), ('p', 'outbox/0', 'c', 0, 1, 5, 'slow', 79)"
            .to_owned(),
        format!(
            "INSERT INTO parked_event VALUES ('p', 'outbox/0', 'a', 4, 1, '{{\"id\":\"{id}\",\"type\":\"s.t\"}}'), \
             ('p', 'outbox/0', 'b', 5, 1, '{{\"unreadable\":\"why\",\"columns\":\"[]\"}}'), \
             ('p', 'outbox/0', 'c', 6, 1, 'no JSON')"
        ),
    ] {
        tx.conn().execute("parking as before", sql, vec![]).await.unwrap();
    }
    tx.commit().await.unwrap();
    db.migrate(BACKBONE_MIGRATIONS).await.unwrap();
    let mut tx = db.read().await.unwrap();
    let parked = parking::list(tx.conn(), &parking::Filter::default(), None, 10).await.unwrap();
    let found: Vec<_> = parked
        .iter()
        .map(|key| (&*key.key, &*key.event_type, key.event_id.as_deref(), key.died_at.map(|at| at.0)))
        .collect();
    assert_eq!(found, [("a", "s.t", Some(id), Some(77)), ("b", "", None, Some(78)), ("c", "", None, None)]);
    let untold = "SELECT COUNT(*) FROM parked_key WHERE tell_at IS NOT NULL";
    let untold = tx.conn().fetch_optional("looking", untold, vec![]).await.unwrap().unwrap();
    assert_eq!(untold.int(0).unwrap(), 2);
}

async fn another_text_under_the_same_number_is_refused(engine: Engine) {
    let world = World::on(engine).await;
    let other = Migration { sqlite: "SELECT 1", mysql: "SELECT 1;\n", ..BACKBONE_MIGRATIONS[0] };
    assert!(matches!(world.db.migrate(&[other]).await, Err(Error::Migration(_))));
}

async fn a_run_that_was_killed_at_any_moment_is_completed_by_the_next(engine: Engine) {
    let database = Database::new(engine).await;
    let db = open(&database.place).await;
    for millis in 0..40 {
        // The connection goes with the future, as it does with a process.
        drop(tokio::time::timeout(Duration::from_millis(millis), db.migrate(BACKBONE_MIGRATIONS)).await);
    }
    db.migrate(BACKBONE_MIGRATIONS).await.unwrap();
    let mut tx = db.read().await.unwrap();
    for table in ["outbox", "projector_position", "parked_key", "parked_event", "idempotency_key", "audit"] {
        tx.conn().fetch("looking", format!("SELECT * FROM {table}"), vec![]).await.unwrap();
    }
}

async fn a_statement_whose_outcome_was_lost_counts_as_done_if_it_is(engine: Engine) {
    let world = World::on(engine).await;
    world.db.migrate(TWO).await.unwrap_err();
    assert_eq!(world.count("SELECT COUNT(*) FROM two").await, 0);
    for done in [0, 1, 2] {
        // As a crash between the statement and its note leaves it.
        world.execute("UPDATE _tidings_migrations SET done = 0, begun = 3 WHERE version = 90").await;
        for _ in 0..done {
            world.execute("UPDATE _tidings_migrations SET done = done + 1 WHERE version = 90").await;
        }
        world.db.migrate(TWO).await.unwrap_err();
        let done = world.count("SELECT done FROM _tidings_migrations WHERE version = 90").await;
        assert_eq!(done, 2, "it went on to what cannot be done");
    }
    world.execute("CREATE TABLE missing (a BIGINT)").await;
    world.db.migrate(TWO).await.unwrap();
    world.db.migrate(TWO).await.unwrap();
    assert_eq!(world.count("SELECT COUNT(*) FROM missing").await, 1, "a change of rows happens once");
}

async fn a_table_of_somebody_else_is_never_taken_for_ours(engine: Engine) {
    let world = World::on(engine).await;
    world.execute("CREATE TABLE two (b BIGINT)").await;
    assert!(matches!(world.db.migrate(TWO).await, Err(Error::Migration(_))));
    assert!(matches!(world.db.migrate(TWO).await, Err(Error::Migration(_))), "nor at the second try");
}
