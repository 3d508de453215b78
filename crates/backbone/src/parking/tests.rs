//! How SQLite looks up what is asked of a parking lot: in a large one nothing may be looked through that was not asked
//! for. Servers are told which index to take.

use super::*;
use crate::{
    Db, Durability,
    audit::Actor,
    db::{BACKBONE_MIGRATIONS, SAID},
    log::Log,
    outbox::MalformedEvent,
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

#[tokio::test]
async fn whatever_is_asked_of_a_large_lot_is_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let db = parked(&folder).await;
    SAID.take();
    ask(&db).await;
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
            assert!(!(is_table && is_wide), "{step}: {sql}");
        }
    }
}
