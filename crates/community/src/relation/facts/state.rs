//! The states of the pairs that a batch of commands names: loaded at once, stored at once.

use std::collections::{BTreeSet, HashMap};

use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row, Value},
};
use tidings_event::Timestamp;

use crate::{Pair, UserId};

/// Where a pair stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) active: bool,
    /// Rises by one with each change of the pair, and by more where it is stated anew.
    pub(super) version: u64,
    /// When it last changed.
    pub(super) since: Timestamp,
}

impl State {
    /// Changes the state, which is known to differ.
    pub(super) fn turn(&mut self, active: bool, at: Timestamp) {
        *self = Self { active, version: self.version + 1, since: at };
    }
}

/// What is known of a pair.
pub(super) enum Known<'s> {
    /// One of the two is not registered.
    Unknown(UserId),
    /// Where the pair stands, to be changed in place.
    State(&'s mut State),
}

/// The states of many pairs, as they are stored and as they shall be.
pub(super) struct States(HashMap<Pair, Entry>);

struct Entry {
    unknown: Option<UserId>,
    stored: State,
    now: State,
}

impl States {
    /// Reads the states of `pairs`, each once; a user paired with himself is left out.
    ///
    /// Only pairs that need a word come back as rows: those with a history and those with a user
    /// nobody knows. A follow of somebody new, the most frequent by far, costs no row.
    pub(super) async fn load(conn: &mut Conn<'_>, pairs: impl ExactSizeIterator<Item = Pair>) -> Result<Self> {
        let mut states = HashMap::with_capacity(pairs.len());
        let mut rows: Vec<[Value; 2]> = Vec::with_capacity(pairs.len());
        for pair in pairs.filter(|pair| pair.from != pair.to) {
            states.entry(pair).or_insert_with(|| {
                rows.push([pair.from.into(), pair.to.into()]);
                Entry { unknown: None, stored: State::default(), now: State::default() }
            });
        }
        keep_turn(conn, states.keys().map(|pair| pair.from).collect()).await?;
        for row in conn.fetch_rows("reading the pairs of commands", select, rows).await? {
            let (pair, entry) = read(&row)?;
            states.insert(pair, entry);
        }
        Ok(Self(states))
    }

    /// What is known of a pair that was loaded.
    pub(super) fn get_mut(&mut self, pair: Pair) -> Known<'_> {
        match self.0.get_mut(&pair) {
            Some(Entry { unknown: None, now, .. }) => Known::State(now),
            Some(Entry { unknown: Some(user), .. }) => Known::Unknown(*user),
            // Never loaded, so nothing says that it exists.
            None => Known::Unknown(pair.to),
        }
    }

    /// Writes the pairs that changed, each once with its last state.
    pub(super) async fn store(self, conn: &mut Conn<'_>) -> Result<()> {
        let mut changed: Vec<(Pair, State)> =
            self.0.into_iter().filter(|(_, entry)| entry.now != entry.stored).map(|(pair, e)| (pair, e.now)).collect();
        // In the order of the unique index: neighbours are written together.
        changed.sort_unstable_by_key(|(pair, _)| *pair);
        let rows = changed.iter().map(row).collect::<Result<Vec<_>>>()?;
        let head =
            "INSERT INTO following (from_user_id, to_user_id, rel_status, version, created_at, updated_at) VALUES";
        let engine = conn.engine();
        let assignments = ["rel_status", "version", "updated_at"]
            .map(|column| format!("{column} = {}", engine.inserted(column)))
            .join(", ");
        let tail = engine.on_conflict("from_user_id, to_user_id", &assignments);
        conn.execute_rows("storing who follows whom", head, rows, &tail).await.map(drop)
    }
}

/// Where several processes decide, has all commands of one follower decided one batch after the
/// other: whoever holds his row of the registry has his turn until the end of the transaction. So
/// no two decide on the same state of a pair, and his events are in the outbox in the order in
/// which they are committed.
pub(in crate::relation) async fn keep_turn(conn: &mut Conn<'_>, followers: BTreeSet<UserId>) -> Result<()> {
    let for_update = match conn.engine() {
        // One writer at a time works.
        Engine::Sqlite => return Ok(()),
        engine @ (Engine::Mysql | Engine::Mariadb) => engine.for_update(),
    };
    // In the order of ids, and no row beside them: two batches then never wait for each other.
    let sql = |input: &str| {
        format!(
            "WITH turn (id) AS ({input}) SELECT STRAIGHT_JOIN a.id FROM turn \
             JOIN account a FORCE INDEX (PRIMARY) ON a.id = turn.id {for_update}"
        )
    };
    let rows: Vec<[Value; 1]> = followers.into_iter().map(|user| [user.into()]).collect();
    conn.fetch_rows("waiting for the turn of followers", sql, rows).await.map(drop)
}

fn select(values: &str) -> String {
    format!(
        "WITH pair (from_id, to_id) AS ({values}) \
         SELECT pair.from_id, pair.to_id, f.id IS NOT NULL, t.id IS NOT NULL, \
                COALESCE(r.rel_status, 0), COALESCE(r.version, 0), COALESCE(r.updated_at, 0) \
         FROM pair \
         LEFT JOIN following r ON r.from_user_id = pair.from_id AND r.to_user_id = pair.to_id \
         LEFT JOIN account f ON f.id = pair.from_id \
         LEFT JOIN account t ON t.id = pair.to_id \
         WHERE r.id IS NOT NULL OR f.id IS NULL OR t.id IS NULL"
    )
}

fn read(row: &Row) -> Result<(Pair, Entry)> {
    let pair = Pair { from: UserId::read(row, 0, "following")?, to: UserId::read(row, 1, "following")? };
    let unknown = match (row.int(2)?, row.int(3)?) {
        (0, _) => Some(pair.from),
        (_, 0) => Some(pair.to),
        _ => None,
    };
    let version = row.int(5)?;
    let version = u64::try_from(version)
        .map_err(|_| Error::MalformedRow { table: "following", reason: format!("{pair} has version {version}") })?;
    let state = State { active: row.int(4)? != 0, version, since: Timestamp(row.int(6)?) };
    Ok((pair, Entry { unknown, stored: state, now: state }))
}

/// A row as inserted. Of a pair that exists already, `created_at` stays as it is.
fn row((pair, state): &(Pair, State)) -> Result<[Value; 6]> {
    let version = i64::try_from(state.version)
        .map_err(|_| Error::LimitExceeded { what: "changes of one pair", limit: i64::MAX as usize })?;
    Ok([
        pair.from.into(),
        pair.to.into(),
        i64::from(state.active).into(),
        version.into(),
        state.since.0.into(),
        state.since.0.into(),
    ])
}
