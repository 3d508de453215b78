//! Which keys are to be tried, when, and what waits under them.

use tidings_event::Timestamp;

use super::{OWNED, Owner, State, lot::read_event, moment};
use crate::{Conn, Error, Result, db::Value, limits::PARKING_ROUND_BYTES_MAX, log::Recorded};

/// When a key is due: at its time, or when its time lies so far ahead that the clock must have been
/// set back since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) now: Timestamp,
    /// No key that is retried is made to wait beyond this.
    pub(crate) horizon: Timestamp,
    /// No key that is redriven is made to wait beyond this.
    pub(crate) redrive_horizon: Timestamp,
}

/// Of one key: of all keys each of its four ranges must be looked for by itself, see [`due`].
const IS_DUE: &str = "((state = 0 AND (next_attempt_at <= ? OR next_attempt_at > ?)) \
     OR (state = 2 AND (next_attempt_at <= ? OR next_attempt_at > ?)))";

impl Due {
    fn args(self) -> [Value; 4] {
        let Self { now, horizon, redrive_horizon } = self;
        [now.0.into(), horizon.0.into(), now.0.into(), redrive_horizon.0.into()]
    }
}

/// Keys whose next try is due, the longest waiting first.
pub(crate) async fn due(conn: &mut Conn<'_>, owner: Owner<'_>, due: Due, limit: usize) -> Result<Vec<String>> {
    let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
    let ranges = [
        (State::Retrying, "<=", due.now),
        (State::Retrying, ">", due.horizon),
        (State::Redriving, "<=", due.now),
        (State::Redriving, ">", due.redrive_horizon),
    ];
    // Each is a stretch of the index: together they would be a look at all that is parked.
    let ranges = ranges.map(|(state, compares, bound)| {
        let sql = format!(
            "SELECT * FROM (SELECT event_key, next_attempt_at FROM parked_key \
             WHERE {OWNED} AND state = {} AND next_attempt_at {compares} ? \
             ORDER BY next_attempt_at LIMIT ?) AS stretch",
            state.code()
        );
        (sql, owner.args([bound.0.into(), limit.clone()]))
    });
    let (texts, args): (Vec<_>, Vec<_>) = ranges.into_iter().unzip();
    let sql = format!("SELECT event_key FROM ({}) AS due ORDER BY next_attempt_at LIMIT ?", texts.join(" UNION ALL "));
    let args = args.into_iter().flatten().chain([limit]).collect();
    conn.fetch("looking for due keys", sql, args).await?.iter().map(|row| row.text(0)).collect()
}

/// What a projector needs to know of its parking lot between two batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lot {
    /// Whether no key is parked.
    pub(crate) is_empty: bool,
    /// When the next try of any key is due that is retried.
    pub(crate) next_retry: Option<Timestamp>,
    /// The same of those that are redriven, which may lie far ahead.
    pub(crate) next_redrive: Option<Timestamp>,
}

impl Lot {
    /// Nothing is parked.
    pub(crate) const EMPTY: Self = Self { is_empty: true, next_retry: None, next_redrive: None };
}

/// Looks at the parking lot of a projector.
pub(crate) async fn lot(conn: &mut Conn<'_>, owner: Owner<'_>) -> Result<Lot> {
    let next = |state: State| {
        format!("(SELECT MIN(next_attempt_at) FROM parked_key WHERE {OWNED} AND state = {})", state.code())
    };
    let sql = format!(
        "SELECT NOT EXISTS (SELECT 1 FROM parked_key WHERE {OWNED}), {}, {}",
        next(State::Retrying),
        next(State::Redriving)
    );
    let args = std::iter::repeat_n(owner.values(), 3).flatten().collect();
    let row = conn.fetch_optional("looking at the parking lot", sql, args).await?;
    row.map_or(Ok(Lot::default()), |row| {
        let next = |column: usize| row.int_or_null(column).map(moment);
        Ok(Lot { is_empty: row.int(0)? != 0, next_retry: next(1)?, next_redrive: next(2)? })
    })
}

/// What waits under a key, from its head on.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Whether an operator lets it be tried, or its time has come by itself.
    pub(crate) state: State,
    /// Failed tries of the head.
    pub(crate) attempts: u32,
    /// Events a second, where an operator has said how many.
    pub(crate) pace: Option<u32>,
    /// The first events, in order.
    pub(crate) events: Vec<Recorded>,
    /// Why the event after them cannot be read, if so.
    pub(crate) unreadable: Option<Error>,
}

/// The first events that wait under a key, at most `limit` and some [`PARKING_ROUND_BYTES_MAX`].
/// Nothing when the key is no longer due, or its row is held by somebody else: a former owner who is
/// trying it, an operator. Else this transaction holds the row, so that nobody tries a key twice at a time.
pub(crate) async fn waiting_if_due(
    conn: &mut Conn<'_>,
    owner: Owner<'_>,
    key: &str,
    due: Due,
    limit: usize,
) -> Result<Option<Waiting>> {
    let if_free = conn.engine().for_update_if_free();
    let sql =
        format!("SELECT state, attempts, pace FROM parked_key WHERE {OWNED} AND event_key = ? AND {IS_DUE} {if_free}");
    let mut args = owner.args([key.into()]);
    args.extend(due.args());
    let Some(row) = conn.fetch_optional("reading a parked key", sql, args).await? else {
        return Ok(None);
    };
    let state = State::from_code(row.int(0)?)?;
    let attempts = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
    let pace = u32::try_from(row.int(2)?).ok().filter(|pace| state == State::Redriving && *pace > 0);
    // At a pace, what is done at once is what a second may have.
    let limit = pace.map_or(limit, |pace| limit.min(usize::try_from(pace).unwrap_or(limit)));
    let sql = format!(
        "SELECT log_offset, event FROM parked_event WHERE {OWNED} AND event_key = ? ORDER BY log_offset LIMIT ?"
    );
    let args = owner.args([key.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()]);
    let mut waiting = Waiting { state, attempts, pace, events: Vec::new(), unreadable: None };
    let mut bytes = 0;
    conn.fetch_while("reading parked events", sql, args, |row| {
        match read_event(row) {
            Ok(recorded) => {
                bytes += recorded.event.payload.get().len();
                waiting.events.push(recorded);
            }
            Err(error) => waiting.unreadable = Some(error),
        }
        Ok(waiting.unreadable.is_none() && bytes < PARKING_ROUND_BYTES_MAX)
    })
    .await?;
    Ok(Some(waiting))
}
