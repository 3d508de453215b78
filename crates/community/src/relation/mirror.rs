//! Rows of the mirror `follower`: the last applied state of each pair, active or not.

use std::collections::{BTreeMap, BTreeSet};

use tidings_backbone::{
    Conn, Error, Result,
    db::{Engine, Row, Value},
    projector::Generation,
};
use tidings_event::Timestamp;

use super::generation::Of;
use crate::{Pair, UserId};

/// The last applied state of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mirrored {
    pub(super) active: bool,
    pub(super) version: i64,
    /// When the pair first became active.
    pub(super) created_at: Timestamp,
    /// When it last changed.
    pub(super) updated_at: Timestamp,
}

/// Reads the rows of those of `pairs` that have one.
pub(super) async fn read(conn: &mut Conn<'_>, of: Of, pairs: &BTreeSet<Pair>) -> Result<BTreeMap<Pair, Mirrored>> {
    select(conn, of, pairs, "").await
}

/// As [`read`], and keeps the rows for this transaction, which is to [`write`] them.
pub(super) async fn read_to_write(
    conn: &mut Conn<'_>,
    generation: Generation,
    pairs: &BTreeSet<Pair>,
) -> Result<BTreeMap<Pair, Mirrored>> {
    let for_update = conn.engine().for_update();
    select(conn, Of::One(generation), pairs, for_update).await
}

async fn select(
    conn: &mut Conn<'_>,
    of: Of,
    pairs: &BTreeSet<Pair>,
    for_update: &'static str,
) -> Result<BTreeMap<Pair, Mirrored>> {
    // In the order of the primary key, in which everybody locks them.
    let mut keys: Vec<(UserId, UserId)> = pairs.iter().map(|pair| (pair.to, pair.from)).collect();
    keys.sort_unstable();
    let rows: Vec<[Value; 2]> = keys.into_iter().map(|(to, from)| [to.into(), from.into()]).collect();
    let join = conn.engine().join_in_order();
    let sql = |values: &str| {
        format!(
            "WITH pair (to_id, from_id) AS ({values}) \
             SELECT m.to_user_id, m.from_user_id, m.rel_status, m.version, m.created_at, m.updated_at \
             FROM pair {join} follower m ON m.to_user_id = pair.to_id AND m.from_user_id = pair.from_id \
             AND m.generation = {} {for_update}",
            of.sql()
        )
    };
    conn.fetch_rows_and("reading the mirror", sql, rows, &of.args()).await?.iter().map(read_row).collect()
}

fn read_row(row: &Row) -> Result<(Pair, Mirrored)> {
    let pair = Pair { to: UserId::read(row, 0, "follower")?, from: UserId::read(row, 1, "follower")? };
    let mirrored = Mirrored {
        active: row.int(2)? == 1,
        version: row.int(3)?,
        created_at: Timestamp(row.int(4)?),
        updated_at: Timestamp(row.int(5)?),
    };
    Ok((pair, mirrored))
}

/// Writes rows over those that were read in this transaction to be written, or as new ones.
///
/// # Errors
/// When a row in the table is not the one that was read: it was changed since, and counting from
/// it would be wrong.
pub(super) async fn write(
    conn: &mut Conn<'_>,
    generation: Generation,
    rows: &BTreeMap<Pair, Mirrored>,
    read: &BTreeMap<Pair, Mirrored>,
) -> Result<()> {
    let tail = upsert(conn.engine());
    let mut rows: Vec<(&Pair, &Mirrored)> = rows.iter().collect();
    // In the order of the primary key: neighbours are written together.
    rows.sort_unstable_by_key(|(pair, _)| (pair.to, pair.from));
    let values: Vec<[Value; 7]> = rows.iter().map(|row| write_row(generation, row)).collect();
    let written = conn.execute_numbers("storing the mirror", INSERT, values, &tail).await?;
    match conn.engine() {
        Engine::Sqlite if written == rows.len() as u64 => Ok(()),
        Engine::Sqlite => {
            let reason = format!("{} of {} rows are not as they were read", rows.len() as u64 - written, rows.len());
            Err(Error::MalformedRow { table: "follower", reason })
        }
        // A row counts twice when it was there. One that was read is kept, so it is as it was; one that was not
        // there and is now was written by somebody who applies the same events.
        Engine::Mysql | Engine::Mariadb => {
            let were_there = rows.iter().filter(|(pair, _)| read.contains_key(pair)).count();
            let is_as_read = written == (rows.len() + were_there) as u64;
            if is_as_read {
                Ok(())
            } else {
                Err(Error::PositionMoved { projector: super::projection::NAME.to_owned() })
            }
        }
    }
}

const INSERT: &str = "INSERT INTO follower \
     (generation, to_user_id, from_user_id, rel_status, version, created_at, updated_at) VALUES";

fn write_row(generation: Generation, (pair, mirrored): &(&Pair, &Mirrored)) -> [Value; 7] {
    [
        generation.0.into(),
        pair.to.into(),
        pair.from.into(),
        i64::from(mirrored.active).into(),
        mirrored.version.into(),
        mirrored.created_at.0.into(),
        mirrored.updated_at.0.into(),
    ]
}

fn upsert(engine: Engine) -> String {
    // created_at stays what it was, except where a pair is stated anew.
    let assignments = ["rel_status", "version", "created_at", "updated_at"]
        .map(|column| format!("{column} = {}", engine.inserted(column)))
        .join(", ");
    let upsert = engine.on_conflict("generation, to_user_id, from_user_id", &assignments);
    match engine {
        // A damaged version counts as none, as it does when it is read.
        Engine::Sqlite => {
            format!("{upsert} WHERE {} > {}", engine.inserted("version"), engine.as_int("follower.version"))
        }
        Engine::Mysql | Engine::Mariadb => upsert,
    }
}
