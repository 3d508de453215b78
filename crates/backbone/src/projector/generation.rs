//! Generations of a projection: one is read while the next one is built beside it.
//!
//! Each has a position, a parking lot and a consumer group of its own, under an identity of its own: the
//! first one the projector's name, the others `name@2`, `name@3`, .... So nothing is renamed when readers are
//! given another generation, and whoever still runs an old one writes to what nobody reads.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use super::{position::positions, rebuild::names_of_unfinished};
use crate::{Conn, Result, trace};

/// The number of a generation, from 1. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation(pub i64);

/// What a call of a projector writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The generation whose rows are written.
    pub generation: Generation,
    /// Whether readers are given it, as far as this process knows: caches are of what is read.
    pub is_live: bool,
}

impl Generation {
    /// The one that every projector begins with.
    pub const FIRST: Self = Self(1);

    /// The name under which position and parking lot of this generation are stored.
    pub fn identity(self, projector: &str) -> String {
        if self == Self::FIRST { projector.to_owned() } else { format!("{projector}@{}", self.0) }
    }

    /// The projector and the generation that an identity is of.
    pub fn of(identity: &str) -> (&str, Self) {
        let named = identity.rsplit_once('@').and_then(|(name, number)| Some((name, number.parse().ok()?)));
        named.map_or((identity, Self::FIRST), |(name, number)| (name, Self(number)))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Target {
    /// The generation that readers are given.
    pub fn live(generation: Generation) -> Self {
        Self { generation, is_live: true }
    }
}

/// The generation of `projector` that readers are given, as seen by the snapshot behind `conn`.
pub async fn live(conn: &mut Conn<'_>, projector: &str) -> Result<Generation> {
    read(conn, projector, "").await
}

/// The same inside a transaction that writes to it: until its end no other one becomes live.
pub async fn keep_live(conn: &mut Conn<'_>, projector: &str) -> Result<Generation> {
    let lock = conn.engine().for_share();
    read(conn, projector, lock).await
}

async fn read(conn: &mut Conn<'_>, projector: &str, lock: &str) -> Result<Generation> {
    let sql = format!("SELECT live FROM projector_generation WHERE projector = ? {lock}");
    let row = conn.fetch_optional("reading which generation is live", sql, vec![projector.into()]).await?;
    row.map_or(Ok(Generation::FIRST), |row| row.int(0).map(Generation))
}

/// The identity that an operator means: of the live generation, where he gives the projector's name alone.
pub(crate) async fn meant(conn: &mut Conn<'_>, name: &str) -> Result<String> {
    if name.contains('@') { Ok(name.to_owned()) } else { Ok(live(conn, name).await?.identity(name)) }
}

/// The number of the generation that readers are given, as an expression of SQL: a reader says
/// `WHERE generation = {live}` and sees one generation whole, since the number is of the snapshot that the rows
/// are of. `projector` is a name, and no text from outside.
pub fn live_sql(projector: &'static str) -> String {
    format!("(SELECT live FROM projector_generation WHERE projector = '{projector}')")
}

/// The live generation of each projector, by name.
pub(crate) async fn all(conn: &mut Conn<'_>) -> Result<BTreeMap<String, Generation>> {
    let sql = "SELECT projector, live FROM projector_generation";
    let rows = conn.fetch("reading which generations are live", sql, Vec::new()).await?;
    rows.iter().map(|row| Ok((row.text(0)?, Generation(row.int(1)?)))).collect()
}

/// A generation that is read or built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtWork {
    /// The projector.
    pub(crate) name: String,
    pub(crate) generation: Generation,
    pub(crate) is_live: bool,
    pub(crate) identity: String,
}

/// The generations that are read, and those that are built, of these projectors and of all that have a position. A
/// replay in place is none of them: it writes to the one that is read.
pub(crate) async fn at_work(conn: &mut Conn<'_>, names: impl Iterator<Item = &str>) -> Result<Vec<AtWork>> {
    let live = all(conn).await?;
    let built = names_of_unfinished(conn).await?;
    let stored = positions(conn.reborrow()).await?.into_iter().map(|position| position.projector);
    let mut found: BTreeMap<(String, Generation), AtWork> = BTreeMap::new();
    let mut add = |name: &str, generation: Generation, is_live: bool| {
        let (name, identity) = (name.to_owned(), generation.identity(name));
        found.insert((name.clone(), generation), AtWork { name, generation, is_live, identity });
    };
    let live_of = |name: &str| live.get(name).copied().unwrap_or(Generation::FIRST);
    names.for_each(|name| add(name, live_of(name), true));
    for identity in stored {
        let (name, generation) = Generation::of(&identity);
        if !name.contains('@') && (live_of(name) == generation || built.contains(&identity)) {
            add(name, generation, live_of(name) == generation);
        }
    }
    Ok(found.into_values().collect())
}

/// Makes the row that says which generation is live, where there is none yet.
pub(super) async fn ensure(conn: &mut Conn<'_>, projector: &str) -> Result<()> {
    let nothing = conn.engine().on_conflict("projector", "live = live");
    let sql = format!("INSERT INTO projector_generation (projector, live, latest) VALUES (?, 1, 1) {nothing}");
    conn.execute("preparing generations", sql, vec![projector.into()]).await.map(drop)
}

/// How what is built of a projector is called in metrics: each rebuild has another number.
pub(super) fn next_label(projector: &str) -> String {
    format!("{projector}@next")
}

/// What a task runs: one generation of a projector. Cheap to clone; clones share what may change.
#[derive(Clone, Debug)]
pub(super) struct Lineage {
    pub(super) generation: Generation,
    pub(super) identity: Arc<str>,
    is_live: Arc<AtomicBool>,
    /// How it is called in metrics while it is built.
    next_label: Arc<str>,
    name: &'static str,
}

impl Lineage {
    pub(super) fn new(name: &'static str, generation: Generation, is_live: bool) -> Self {
        let (identity, next_label) = (generation.identity(name).into(), next_label(name).into());
        Self { generation, identity, is_live: Arc::new(AtomicBool::new(is_live)), next_label, name }
    }

    /// The same under another name, beside the live one and on the same rows.
    pub(super) fn called(self, identity: &str) -> Self {
        Self { identity: identity.into(), ..self }
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_live.load(Ordering::SeqCst)
    }

    pub(super) fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, Ordering::SeqCst);
    }

    pub(super) fn target(&self) -> Target {
        Target { generation: self.generation, is_live: self.is_live() }
    }

    /// When work began that is traced: not what is built, whose events were applied long ago.
    pub(super) fn traced(&self) -> Option<SystemTime> {
        self.is_live().then(trace::started).flatten()
    }

    /// The projector's name, for the generation that readers are given.
    pub(super) fn label(&self) -> metrics::SharedString {
        if self.is_live() { self.name.into() } else { Arc::clone(&self.next_label).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Generation, Lineage};
    use crate::trace;

    #[test]
    fn a_generation_is_read_back_from_its_identity() {
        assert_eq!(Generation::FIRST.identity("orders"), "orders");
        for number in [1, 2, 31] {
            let identity = Generation(number).identity("orders");
            assert_eq!(Generation::of(&identity), ("orders", Generation(number)));
        }
        assert_eq!(Generation::of("a@b"), ("a@b", Generation::FIRST));
    }

    #[test]
    fn what_is_built_is_traced_once_readers_are_given_it() {
        let _spans = trace::collect(8);
        let lineage = Lineage::new("orders", Generation(2), false);
        assert_eq!(lineage.traced(), None);
        lineage.set_live(true);
        assert!(lineage.traced().is_some());
    }
}
