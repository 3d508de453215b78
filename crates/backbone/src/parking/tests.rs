//! How SQLite looks up what is asked of a parking lot and of the log: in a large one nothing may be looked through that
//! was not asked for. Servers are told which index to take.

use std::time::Duration;

use super::*;
use crate::{
    Clock, Db, Durability,
    audit::Actor,
    db::{BACKBONE_MIGRATIONS, SAID},
    log::Log,
    outbox::{self, MalformedEvent},
    retention::{self, Retention},
};

const NOW: Timestamp = Timestamp(10);
const LATER: Timestamp = Timestamp(1_000);

/// A database on which two rows that are no events wait under the key `k` of `p`.
async fn parked(folder: &tempfile::TempDir) -> Db {
    let db = Db::open_sqlite(&folder.path().join("db")).await.unwrap();
    db.migrate(BACKBONE_MIGRATIONS).await.unwrap();
    let mut tx = db.write(Durability::Full).await.unwrap();
    for offset in [1, 2] {
        let text = String::new;
        let row = MalformedEvent {
            offset: Offset(offset),
            event_type: text(),
            key: "k".to_owned(),
            columns: text(),
            reason: text(),
        };
        let owner = Owner { projector: "p", part: &Part::outbox() };
        park_malformed(&mut tx.conn(), owner, &row, NOW).await.unwrap();
    }
    tx.commit().await.unwrap();
    db
}

/// Asks everything that operators, alerts and tasks ask while much is parked.
async fn ask(db: &Db) {
    let part = Part::outbox();
    let owner = Owner { projector: "p", part: &part };
    let mut look = db.glance().await.unwrap();
    let when = Due { now: NOW, horizon: LATER, redrive_horizon: LATER };
    due(&mut look.conn(), owner, when, 64).await.unwrap();
    lot(&mut look.conn(), owner).await.unwrap();
    waiting_if_due(&mut look.conn(), owner, "k", when, 9).await.unwrap();
    waiting(&mut look.conn(), "p", &part, None, 9).await.unwrap();
    parked_among(&mut look.conn(), owner, ["k"].into_iter()).await.unwrap();
    assert_eq!(list(look.conn(), &Filter::one("p", "k"), None, 9).await.unwrap().len(), 1);
    assert_eq!(events(look.conn(), "p", "k", Some((&part, Offset(1))), 9).await.unwrap().0.len(), 1);
    let one = Redrive { filter: Filter::one("p", "k"), ..Redrive::default() };
    plan(look.conn(), &one).await.unwrap().unwrap();
    Log::Embedded(db.clone()).before(std::slice::from_ref(&part), NOW).await.unwrap();
    drop(look);
    let death = take_untold(db, NOW, LATER, LATER).await.unwrap().unwrap();
    note_told(db, &death, None).await.unwrap();
    assert!(take_untold(db, NOW, LATER, LATER).await.unwrap().is_none());
    redrive(db, &one, &Actor::new("ada"), None, NOW).await.unwrap().unwrap();
    for which in [Which::Id("no such".to_owned()), Which::At(None, Offset(1)), Which::At(Some(part), Offset(2))] {
        let (projector, key) = ("p".to_owned(), "k".to_owned());
        let wanted = Discard { projector, key, which, reason: "poison".parse().unwrap() };
        discard(db, &wanted, &Actor::new("ada"), None, NOW).await.unwrap().ok();
    }
}

/// Reads the log as projectors, onlookers and the clean-up do.
async fn read_on(db: &Db) {
    let (part, hour) = (Part::outbox(), Duration::from_hours(1));
    let mut look = db.glance().await.unwrap();
    outbox::read_batch(&mut look.conn(), Offset(5), 9).await.unwrap();
    outbox::read_after(&mut look.conn(), Offset(5), 9).await.unwrap();
    drop(look);
    Log::Embedded(db.clone()).behind(vec![(part.clone(), Offset(5))]).await.unwrap();
    let mut tx = db.write(Durability::Full).await.unwrap();
    for sql in [
        "INSERT INTO projector_position (projector, part, log_offset, updated_at) VALUES ('p', 'outbox/0', 9, 0)",
        "INSERT INTO outbox (event_id, event_type, schema_version, aggregate_type, aggregate_id, event_key, version, \
         occurred_at, payload, metadata) VALUES (x'00', 't', 1, 'a', 'a', 'k', 1, 0, '1', '{}')",
    ] {
        tx.conn().execute("preparing", sql, Vec::new()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let options = retention::Options {
        keep_events: Some(hour),
        keep_answers: hour,
        keep_audit: Some(hour),
        keep_trail: hour,
        round_gap: hour,
        projectors: vec!["p"],
    };
    let clock = Clock::manual(Timestamp(100_000_000));
    assert_eq!(Retention::new(db.clone(), clock, options).round().await.unwrap(), 1);
}

#[tokio::test]
async fn whatever_is_asked_of_a_large_lot_or_of_a_long_log_is_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let db = parked(&folder).await;
    SAID.take();
    ask(&db).await;
    read_on(&db).await;
    let mut look = db.glance().await.unwrap();
    for sql in SAID.take() {
        if !sql.contains("parked_") && !sql.contains("outbox") {
            continue;
        }
        for row in look.conn().fetch("explaining", format!("EXPLAIN QUERY PLAN {sql}"), Vec::new()).await.unwrap() {
            let step = row.text(3).unwrap();
            let table = step.split(' ').nth(1).unwrap_or_default();
            let is_table = ["parked_key", "parked_event", "outbox", "k", "h", "e"].contains(&table);
            let is_wide = step.starts_with("SCAN") || step.ends_with("(projector=?)");
            assert!(!(sql.contains("outbox ") && step.contains("TEMP B-TREE")), "{step}: {sql}");
            assert!(!(is_table && is_wide), "{step}: {sql}");
        }
    }
}
