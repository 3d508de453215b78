//! How far the relay is with Tidings' own outbox, told by its checkpoint and the outbox itself.

use std::collections::BTreeSet;

use tidings_binlog::Flavor;
use tidings_event::Timestamp;

use super::Offset;
use crate::{
    Conn, Result,
    db::Engine,
    limits::RELAY_BEHIND_ROWS_COUNTED,
    relay::{self, Checkpoint, Gap, Known, Seen},
};

/// What the relay has published of its outbox: it reads one table.
pub(super) fn seen(checkpoint: &Checkpoint) -> Option<&Seen> {
    checkpoint.tables.first().map(|table| &table.seen)
}

/// Which numbers of the outbox are in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    up_to: i64,
    /// Those of them that are not.
    pending: BTreeSet<i64>,
    seen: Option<Seen>,
}

impl Noted {
    pub(super) fn all_but(up_to: Offset, pending: BTreeSet<i64>) -> Self {
        Self { up_to: up_to.0, pending, seen: None }
    }

    pub(super) fn by(checkpoint: Option<&Checkpoint>) -> Self {
        Self { seen: checkpoint.and_then(seen).cloned(), ..Self::default() }
    }

    /// Whether it is there for certain.
    pub(crate) fn has(&self, number: i64) -> bool {
        let is_seen = |seen: &Seen| u64::try_from(number).is_ok_and(|number| seen.contains(number));
        (number <= self.up_to && !self.pending.contains(&number)) || self.seen.as_ref().is_some_and(is_seen)
    }

    /// The number up to which all are there, but for those that are [`Noted::pending`].
    pub(crate) fn up_to(&self) -> Offset {
        Offset(self.seen.as_ref().map_or(0, whole).max(self.up_to))
    }

    /// The numbers up to that one that are not there: polling relays have yet to send them.
    pub(crate) fn pending(&self) -> impl Iterator<Item = i64> {
        self.pending.iter().copied()
    }
}

/// The number up to which the relay has published every event, whatever was committed when.
pub(super) fn whole(seen: &Seen) -> i64 {
    number(seen.gaps().first().map_or(seen.max, |gap| gap.from.saturating_sub(1)))
}

/// The transactions that the server has executed, in its own words; empty where it does not tell.
pub(super) async fn executed(conn: &mut Conn<'_>) -> Result<String> {
    let sql = match conn.engine() {
        Engine::Sqlite => return Ok(String::new()),
        Engine::Mysql => "SELECT CAST(@@GLOBAL.gtid_executed AS CHAR)",
        Engine::Mariadb => "SELECT CAST(@@GLOBAL.gtid_binlog_pos AS CHAR)",
    };
    let row = conn.fetch_optional("asking what was executed", sql, Vec::new()).await?;
    Ok(row.map(|row| row.text_or_null(0)).transpose()?.flatten().unwrap_or_default())
}

/// Whether all that was committed is in the log when the outbox ended at `head` and the server had executed
/// `executed`. The relay's position tells, if it has passed that already; else the numbers do.
pub(super) async fn is_whole(
    conn: &mut Conn<'_>,
    checkpoint: Option<&Checkpoint>,
    head: Offset,
    executed: &str,
) -> Result<bool> {
    let flavor = match conn.engine() {
        Engine::Mariadb => Flavor::Mariadb,
        Engine::Mysql | Engine::Sqlite => Flavor::Mysql,
    };
    // While the tables are read, the position is where the stream is to be joined.
    let settled = checkpoint.filter(|checkpoint| checkpoint.recovery.is_none());
    if settled.is_some_and(|checkpoint| relay::has_read(flavor, &checkpoint.position, executed)) {
        return Ok(true);
    }
    if missing(conn, checkpoint, head).await?.is_some() {
        return Ok(false);
    }
    let gaps = checkpoint.and_then(seen).map_or(&[] as &[Gap], Seen::gaps);
    for gap in gaps.iter().filter(|gap| number(gap.from) <= head.0) {
        if lacks_some(conn, gap).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// When the first event up to `head` occurred that is committed and not published, as far as that is quickly
/// told: for what may lie within combs and blurs, every row of the last hour would have to be looked at.
pub(super) async fn missing(
    conn: &mut Conn<'_>,
    checkpoint: Option<&Checkpoint>,
    head: Offset,
) -> Result<Option<Timestamp>> {
    let none = Seen::default();
    let seen = checkpoint.and_then(seen).unwrap_or(&none);
    let holes = seen.gaps().iter().filter(|gap| gap.known() == Known::Hole).map(|gap| (gap.from, gap.to));
    // The last range is all that comes after what was published.
    for (from, to) in holes.chain([(seen.max + 1, u64::MAX)]) {
        if number(from) > head.0 {
            break;
        }
        let sql = "SELECT occurred_at FROM outbox WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT 1";
        let args = vec![number(from).into(), number(to).min(head.0).into()];
        if let Some(row) = conn.fetch_optional("looking for unpublished events", sql, args).await? {
            return row.int(0).map(|at| Some(Timestamp(at)));
        }
    }
    Ok(None)
}

/// Whether a row that was not published lies within a comb or a blur. Retention takes none from there.
async fn lacks_some(conn: &mut Conn<'_>, gap: &Gap) -> Result<bool> {
    let (from, to) = (number(gap.from), number(gap.to));
    let (sql, args, published) = match gap.known() {
        // It was looked at already.
        Known::Hole => return Ok(false),
        Known::Comb { hole, period } => (
            "SELECT COUNT(*) FROM outbox WHERE seq BETWEEN ? AND ? AND MOD(seq - ?, ?) < ?",
            vec![from, to, from, number(period), number(hole)],
            0,
        ),
        Known::Blur { come } => ("SELECT COUNT(*) FROM outbox WHERE seq BETWEEN ? AND ?", vec![from, to], number(come)),
    };
    let args = args.into_iter().map(Into::into).collect();
    let found = conn.fetch_optional("counting unpublished events", sql, args).await?;
    Ok(found.map_or(Ok(0), |row| row.int(0))? > published)
}

/// How many events there are behind a number: counted as far as that is cheap, then estimated from those, since
/// servers may leave out as many numbers as they like.
pub(super) async fn behind(conn: &mut Conn<'_>, published: Offset, head: Offset) -> Result<i64> {
    let sql = "SELECT COUNT(*), MAX(seq) FROM (SELECT seq FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?) AS first";
    let args = vec![published.0.into(), RELAY_BEHIND_ROWS_COUNTED.into()];
    let Some(row) = conn.fetch_optional("counting unpublished events", sql, args).await? else { return Ok(0) };
    let (count, last) = (row.int(0)?, row.int_or_null(1)?.unwrap_or(published.0));
    if count < RELAY_BEHIND_ROWS_COUNTED {
        return Ok(count);
    }
    let share = (head.0 - published.0) as f64 / (last - published.0).max(1) as f64;
    Ok((count as f64 * share.max(1.0)) as i64)
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
