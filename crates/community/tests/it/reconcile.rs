//! Reconciliation: finds exactly what is wrong, and puts it right by events.

mod cache;
mod damage;
mod load;
mod many;
mod repair;
mod show;

use std::{collections::BTreeMap, time::Duration};

use tidings_backbone::{
    Durability,
    limits::RECONCILE_REPAIR_BATCH,
    log::Log,
    projector::Generation,
    reconcile::{Compared, Comparison, Difference, Reconciled},
};
use tidings_community::relation::{EVENT_TYPES, counters::Counters, projection::NAME, reconcile::RelationReconciled};
use tidings_testkit::database::Engine;

use crate::world::World;

/// What was compared, by the name of the check.
pub(crate) struct Found(BTreeMap<&'static str, Compared>);

pub(crate) async fn compare_by(world: &World, reconciled: &RelationReconciled) -> Found {
    compare_within(world, reconciled, Duration::from_secs(60)).await
}

/// The same, without much patience with the projector.
pub(crate) async fn compare_at_once(world: &World) -> Found {
    compare_within(world, &RelationReconciled::new(world.clock.clone()), Duration::from_millis(100)).await
}

async fn compare_within(world: &World, reconciled: &RelationReconciled, patience: Duration) -> Found {
    let (db, log, generation) = (&world.db, Log::Embedded(world.db.clone()), Generation::FIRST);
    let comparison = Comparison { db, log: &log, generation, identity: NAME, event_types: EVENT_TYPES, patience };
    let compared = reconciled.compare(&comparison).await.unwrap();
    Found(compared.into_iter().map(|compared| (compared.check, compared)).collect())
}

pub(crate) async fn compare(world: &World) -> Found {
    compare_by(world, &RelationReconciled::new(world.clock.clone())).await
}

/// Repairs, a batch after the other; answers the number of events.
pub(crate) async fn repair_by(world: &World, reconciled: &RelationReconciled, differences: &[Difference]) -> u64 {
    let mut events = 0;
    for batch in differences.chunks(RECONCILE_REPAIR_BATCH) {
        let mut tx = world.db.write(Durability::Full).await.unwrap();
        events += reconciled.repair(batch, &world.ids, tx.conn()).await.unwrap();
        tx.commit().await.unwrap();
    }
    events
}

pub(crate) async fn repair(world: &World, differences: &[Difference]) -> u64 {
    repair_by(world, &RelationReconciled::new(world.clock.clone()), differences).await
}

impl Found {
    pub(crate) fn of(&self, check: &str) -> &Compared {
        &self.0[check]
    }

    pub(crate) fn kinds(&self) -> BTreeMap<&'static str, u64> {
        self.0.values().flat_map(|compared| compared.kinds.clone()).collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().map(Compared::total).sum()
    }

    pub(crate) fn lagging(&self) -> u64 {
        self.0.values().map(|compared| compared.lagging).sum()
    }

    /// What a check says beside its numbers.
    pub(crate) fn note(&self, check: &str) -> &str {
        self.of(check).note.as_deref().unwrap_or_default()
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        self.0.values().flat_map(|compared| compared.differences.clone()).collect()
    }

    /// What a check found, in order.
    pub(crate) fn subjects(&self, check: &str) -> Vec<String> {
        let mut subjects: Vec<_> = self.of(check).differences.iter().map(|found| found.subject.clone()).collect();
        subjects.sort();
        subjects
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert_eq!((self.total(), self.lagging()), (0, 0), "{:#?}", self.differences());
    }
}

/// The stored counters of everybody who has a row; `None` where it cannot be read.
pub(crate) async fn stored(world: &World) -> BTreeMap<i64, Option<[u32; 5]>> {
    let mut tx = world.db.read().await.unwrap();
    let columns = match world.engine {
        Engine::Sqlite => "slots, checksum",
        Engine::Mariadb | Engine::Mysql => "followings, followers, posts, likes_received, favorites_received",
    };
    let sql = format!("SELECT user_id, {columns} FROM user_counter WHERE generation = 1");
    let rows = tx.conn().fetch("testing", sql, vec![]).await.unwrap();
    let read = |row: &tidings_backbone::db::Row| match world.engine {
        Engine::Sqlite => {
            Counters::decode(&row.bytes(1).unwrap(), row.int(2).unwrap()).map(|counters| counters.slots())
        }
        Engine::Mariadb | Engine::Mysql => {
            let slots: Vec<u32> = (1..6).filter_map(|slot| row.int(slot).unwrap().try_into().ok()).collect();
            slots.try_into().ok()
        }
    };
    rows.iter().map(|row| (row.int(0).unwrap(), read(row))).collect()
}

/// Sets the counters of a user, with or without a row, behind everybody's back.
pub(crate) async fn set(world: &World, id: i64, counters: Counters) {
    world.tamper("DELETE FROM user_counter WHERE user_id = ?", vec![id.into()]).await;
    let (columns, values) = match world.engine {
        Engine::Sqlite => {
            let (slots, checksum) = counters.encode();
            ("slots, checksum", vec![slots.to_vec().into(), i64::from(checksum).into()])
        }
        Engine::Mariadb | Engine::Mysql => (
            "followings, followers, posts, likes_received, favorites_received",
            counters.slots().into_iter().map(|slot| i64::from(slot).into()).collect(),
        ),
    };
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!(
        "INSERT INTO user_counter (generation, user_id, changes, {columns}) VALUES (1, ?, 1700000000000, {marks})"
    );
    world.tamper(&sql, [vec![id.into()], values].concat()).await;
}

/// What the counters of everybody who has relations must be once all is applied: counted from facts.
pub(crate) async fn counted(world: &World) -> BTreeMap<i64, [u32; 5]> {
    let mut counted: BTreeMap<i64, [u32; 5]> = BTreeMap::new();
    for (pair, (active, ..)) in world.facts().await {
        counted.entry(pair.from.get()).or_default()[0] += u32::from(active);
        counted.entry(pair.to.get()).or_default()[1] += u32::from(active);
    }
    counted
}
