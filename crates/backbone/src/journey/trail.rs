//! When positions were where. The last place of a position is in its own row; a row of the trail is written when it
//! is left, unless that is in the same tick in which it was come to: so the row of a tick tells where the position
//! was at its end, and nothing is ever read or changed to write it.

use tidings_event::Timestamp;

use crate::{
    Conn, Result,
    db::Value,
    limits::TRAIL_TICK,
    log::{Offset, Part, Recorded},
    parking::Owner,
};

/// A position that is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    pub(crate) part: &'a Part,
    pub(crate) offset: Offset,
    /// When it was come to.
    pub(crate) since: Timestamp,
}

/// Notes that positions of a projector are left now, on the transaction that moves them: one statement, or none.
pub(crate) async fn note<'p>(
    conn: &mut Conn<'_>,
    projector: &str,
    left: impl Iterator<Item = Left<'p>>,
    now: Timestamp,
) -> Result<()> {
    let rows: Vec<[Value; 5]> = left
        .filter(|left| tick(left.since) != tick(now))
        .map(|Left { part, offset, since }| {
            [projector.into(), part.to_string().into(), offset.0.into(), since.0.into(), now.0.into()]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    // A projector that was begun anew comes by places where it was before.
    let (passed, left) = (conn.engine().inserted("passed_at"), conn.engine().inserted("left_at"));
    let set = format!("passed_at = {passed}, left_at = {left}");
    let tail = conn.engine().on_conflict("projector, part, log_offset", &set);
    let head = "INSERT INTO projector_trail (projector, part, log_offset, passed_at, left_at) VALUES";
    conn.execute_rows("writing a trail", head, rows, &tail).await.map(drop)
}

/// A moment in the tick before.
pub(crate) fn tick_before(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - tick_ms())
}

fn tick(at: Timestamp) -> i64 {
    at.0.div_euclid(tick_ms())
}

fn tick_ms() -> i64 {
    i64::try_from(TRAIL_TICK.as_millis()).unwrap_or(i64::MAX)
}

/// Notes that events were applied now that had been parked, on the transaction that applies them.
pub(crate) async fn note_late(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    events: &[Recorded],
    now: Timestamp,
) -> Result<()> {
    let part = owner.part.to_string();
    let row = |recorded: &Recorded| -> [Value; 4] {
        [owner.projector.into(), part.as_str().into(), recorded.offset.0.into(), now.0.into()]
    };
    let set = format!("applied_at = {}", conn.engine().inserted("applied_at"));
    let tail = conn.engine().on_conflict("projector, part, log_offset", &set);
    let head = "INSERT INTO applied_late (projector, part, log_offset, applied_at) VALUES";
    conn.execute_rows("noting what was applied late", head, events.iter().map(row).collect(), &tail).await.map(drop)
}

/// When a projector applied an event that had been parked, as long as that is kept.
pub(super) async fn applied_late(conn: &mut Conn<'_>, owner: Owner<'_>, offset: Offset) -> Result<Option<Timestamp>> {
    let sql = "SELECT applied_at FROM applied_late WHERE projector = ? AND part = ? AND log_offset = ?";
    moment(conn, sql, owner, offset).await
}

/// When the position of a projector passed an event, as long as that is kept; `since` is when it came to where it
/// stands. It is told only where the place before is known too: else the event may have been passed long before.
pub(super) async fn passed_at(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    offset: Offset,
    since: Timestamp,
) -> Result<Option<Timestamp>> {
    let before = "SELECT passed_at FROM projector_trail WHERE projector = ? AND part = ? AND log_offset < ? \
                  ORDER BY log_offset DESC LIMIT 1";
    if moment(conn, before, owner, offset).await?.is_none() {
        return Ok(None);
    }
    let passed = "SELECT passed_at FROM projector_trail WHERE projector = ? AND part = ? AND log_offset >= ? \
                  ORDER BY log_offset LIMIT 1";
    Ok(Some(moment(conn, passed, owner, offset).await?.unwrap_or(since)))
}

async fn moment(conn: &mut Conn<'_>, sql: &'static str, owner: Owner<'_>, offset: Offset) -> Result<Option<Timestamp>> {
    let args = vec![owner.projector.into(), owner.part.to_string().into(), offset.0.into()];
    let row = conn.fetch_optional("reading a trail", sql, args).await?;
    row.map(|row| row.int(0).map(Timestamp)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_a_tenth_of_a_second_before_and_after_the_epoch() {
        for (at, of) in [(0, 0), (99, 0), (100, 1), (-1, -1), (-100, -1), (-101, -2)] {
            assert_eq!(tick(Timestamp(at)), of, "{at}");
            assert_eq!(tick(tick_before(Timestamp(at))), of - 1, "{at}");
        }
    }
}
