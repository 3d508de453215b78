//! The tables of runs and of what is to be repaired.

use tidings_event::Timestamp;

use super::{
    Difference,
    run::{Found, Repair, RepairState, Run, State, Trigger},
};
use crate::{
    Conn, Error, Result,
    audit::first_bytes,
    db::{Row, Value},
    limits::{RECONCILE_REPAIR_BATCH, RECONCILE_RUNS_KEPT, RECONCILE_STORED_ROWS, RECONCILE_TEXT_BYTES_MAX},
};

const COLUMNS: &str = "seq, run_id, state, origin, actor, projector, started_at, finished_at, error, checks, \
    differences, lagging, repair_state, repair_actor, repaired_events, repaired_at, repair_error, runner, \
    runner_until, tries";

/// The run that is being done or repaired, or is to be; kept for this transaction, which may change it.
pub(super) async fn active_to_write(conn: &mut Conn<'_>) -> Result<Option<Run>> {
    let lock = conn.engine().for_update();
    one(conn, format!("SELECT {COLUMNS} FROM reconciliation WHERE active = 1 {lock}"), vec![]).await
}

/// The run that is being done or repaired, or is to be.
pub(super) async fn active(conn: &mut Conn<'_>) -> Result<Option<Run>> {
    one(conn, format!("SELECT {COLUMNS} FROM reconciliation WHERE active = 1"), vec![]).await
}

pub(super) async fn find(conn: &mut Conn<'_>, id: &str) -> Result<Option<Run>> {
    one(conn, format!("SELECT {COLUMNS} FROM reconciliation WHERE run_id = ?"), vec![id.into()]).await
}

pub(super) async fn find_to_write(conn: &mut Conn<'_>, id: &str) -> Result<Option<Run>> {
    let lock = conn.engine().for_update();
    one(conn, format!("SELECT {COLUMNS} FROM reconciliation WHERE run_id = ? {lock}"), vec![id.into()]).await
}

/// The newest run of everything before this one; those of one projector do not stand in for it.
pub(super) async fn last_of_all_before(conn: &mut Conn<'_>, seq: i64) -> Result<Option<Run>> {
    let sql =
        format!("SELECT {COLUMNS} FROM reconciliation WHERE seq < ? AND projector IS NULL ORDER BY seq DESC LIMIT 1");
    one(conn, sql, vec![seq.into()]).await
}

/// The newest run that was done in all its parts.
pub(super) async fn last_whole(conn: &mut Conn<'_>) -> Result<Option<Run>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reconciliation WHERE state = 'done' AND projector IS NULL ORDER BY seq DESC LIMIT 1"
    );
    one(conn, sql, vec![]).await
}

/// The oldest run that is kept.
pub(super) async fn first(conn: &mut Conn<'_>) -> Result<Option<Run>> {
    one(conn, format!("SELECT {COLUMNS} FROM reconciliation ORDER BY seq LIMIT 1"), vec![]).await
}

/// Runs before `before`, the newest first.
pub(super) async fn list(conn: &mut Conn<'_>, before: Option<i64>, limit: usize) -> Result<Vec<Run>> {
    let sql = format!("SELECT {COLUMNS} FROM reconciliation WHERE seq < ? ORDER BY seq DESC LIMIT ?");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let args = vec![before.unwrap_or(i64::MAX).into(), limit.into()];
    conn.fetch("reading reconciliations", sql, args).await?.iter().map(read).collect()
}

async fn one(conn: &mut Conn<'_>, sql: String, args: Vec<Value>) -> Result<Option<Run>> {
    conn.fetch_optional("reading a reconciliation", sql, args).await?.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<Run> {
    let malformed = |what: &str| Error::MalformedRow { table: "reconciliation", reason: what.to_owned() };
    let number = |column: usize| row.int(column).map(|number| u64::try_from(number).unwrap_or(0));
    let moment = |column: usize| row.int_or_null(column).map(|at| at.map(Timestamp));
    let checks: Vec<Found> = serde_json::from_str(&row.text(9)?).map_err(Error::json("reading a reconciliation"))?;
    Ok(Run {
        seq: row.int(0)?,
        id: row.text(1)?,
        state: State::read(&row.text(2)?).ok_or_else(|| malformed("its state is unknown"))?,
        trigger: Trigger::read(&row.text(3)?).ok_or_else(|| malformed("its origin is unknown"))?,
        actor: row.text_or_null(4)?,
        projector: row.text_or_null(5)?,
        started_at: Timestamp(row.int(6)?),
        finished_at: moment(7)?,
        error: row.text_or_null(8)?,
        checks,
        differences: number(10)?,
        lagging: number(11)?,
        repair: Repair {
            state: RepairState::read(&row.text(12)?).ok_or_else(|| malformed("its repair's state is unknown"))?,
            actor: row.text_or_null(13)?,
            events: number(14)?,
            repaired_at: moment(15)?,
            error: row.text_or_null(16)?,
        },
        runner: row.text(17)?,
        runner_until: row.int(18)?,
        tries: row.int(19)?,
    })
}

/// Stores a run that is to be done. Where several write at once, one that another one stores at the same time makes
/// it fail as a lost race.
pub(super) async fn insert(
    conn: &mut Conn<'_>,
    id: &str,
    trigger: Trigger,
    actor: Option<&str>,
    projector: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO reconciliation (run_id, active, state, origin, actor, projector, started_at, checks, \
               differences, lagging, repair_state, repaired_events, runner, runner_until, tries) \
               VALUES (?, 1, 'running', ?, ?, ?, ?, '[]', 0, 0, 'none', 0, '', ?, 0)";
    let args = vec![
        id.into(),
        trigger.name().into(),
        actor.into(),
        projector.into(),
        now.0.into(),
        // Nobody holds it: the lease ended just before it began.
        (now.0 - 1).into(),
    ];
    conn.execute("storing a reconciliation", sql, args).await.map(drop)
}

/// Removes runs that are older than those that are kept.
pub(super) async fn remove_old(conn: &mut Conn<'_>, seq: i64) -> Result<()> {
    let sql = "DELETE FROM reconciliation WHERE seq <= ? AND active IS NULL";
    let last = seq.saturating_sub(RECONCILE_RUNS_KEPT);
    conn.execute("removing old reconciliations", sql, vec![last.into()]).await.map(drop)
}

/// Makes a process the one that does what is to be done, until then; false when another one has become it.
pub(super) async fn take(conn: &mut Conn<'_>, run: &Run, runner: &str, until: Timestamp) -> Result<bool> {
    let sql = "UPDATE reconciliation SET runner = ?, runner_until = ?, tries = tries + 1 \
               WHERE seq = ? AND active = 1 AND runner = ? AND runner_until = ?";
    let args = vec![runner.into(), until.0.into(), run.seq.into(), run.runner.as_str().into(), run.runner_until.into()];
    Ok(conn.execute("taking a reconciliation", sql, args).await? > 0)
}

/// Changes columns of the run that `runner` does; answers whether he still does it.
pub(super) async fn change(
    conn: &mut Conn<'_>,
    seq: i64,
    runner: &str,
    columns: Vec<(&'static str, Value)>,
) -> Result<bool> {
    let set: Vec<String> = columns.iter().map(|(column, _)| format!("{column} = ?")).collect();
    let sql = format!("UPDATE reconciliation SET {} WHERE seq = ? AND runner = ? AND active = 1", set.join(", "));
    let mut args: Vec<Value> = columns.into_iter().map(|(_, value)| value).collect();
    args.extend([seq.into(), runner.into()]);
    Ok(conn.execute("changing a reconciliation", sql, args).await? > 0)
}

/// Holds the run until the end of the transaction if `runner` still does it; answers whether he does. Whoever was
/// frozen for so long that another one has taken it must not touch what that one has stored.
pub(super) async fn hold(conn: &mut Conn<'_>, seq: i64, runner: &str) -> Result<bool> {
    let lock = conn.engine().for_update();
    let sql = format!("SELECT seq FROM reconciliation WHERE seq = ? AND runner = ? AND active = 1 {lock}");
    let held = conn.fetch_optional("holding a reconciliation", sql, vec![seq.into(), runner.into()]).await?;
    Ok(held.is_some())
}

/// Only what the last run found may be repaired: what others found may not be any more.
pub(super) async fn forbid_others(conn: &mut Conn<'_>, seq: i64) -> Result<()> {
    let sql = "UPDATE reconciliation SET repair_state = 'none' \
               WHERE seq <> ? AND active IS NULL AND repair_state IN ('possible', 'failed')";
    conn.execute("forgetting what was found before", sql, vec![seq.into()]).await.map(drop)
}

/// Whose differences are removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// Those that an earlier try of the run has stored.
    Of(i64),
    /// Those of the runs before it, which are not to be repaired any more.
    Before(i64),
}

/// Removes some of them, since they may be so many that others would wait for the transaction; answers whether there
/// were any.
pub(super) async fn remove_some(conn: &mut Conn<'_>, whose: Whose) -> Result<bool> {
    let (is_whose, seq) = match whose {
        Whose::Of(seq) => ("run = ?", seq),
        Whose::Before(seq) => ("run < ?", seq),
    };
    let sql = format!(
        "SELECT run, MAX(number) FROM (SELECT run, number FROM reconciliation_difference WHERE {is_whose} \
         ORDER BY run, number LIMIT ?) AS oldest GROUP BY run ORDER BY run LIMIT 1"
    );
    let limit = i64::try_from(RECONCILE_STORED_ROWS).unwrap_or(i64::MAX);
    let row = conn.fetch_optional("looking for old differences", sql, vec![seq.into(), limit.into()]).await?;
    let Some(row) = row else { return Ok(false) };
    remove_differences(conn, row.int(0)?, row.int(1)?).await.map(|()| true)
}

/// A difference that events can put right, and who knows which.
#[derive(Clone, Debug)]
pub(super) struct Repairable {
    pub(super) projector: String,
    pub(super) check: String,
    pub(super) difference: Difference,
}

/// Stores differences from this number on.
pub(super) async fn add_differences(conn: &mut Conn<'_>, seq: i64, first: i64, found: &[Repairable]) -> Result<()> {
    let text = |text: &str| Value::from(first_bytes(text, RECONCILE_TEXT_BYTES_MAX));
    let row = |(number, Repairable { projector, check, difference }): (i64, &Repairable)| {
        let Difference { kind, subject, expected, found } = difference;
        [
            seq.into(),
            number.into(),
            projector.as_str().into(),
            check.as_str().into(),
            Value::from(first_bytes(kind, 255)),
            text(subject),
            text(expected),
            text(found),
        ]
    };
    let rows: Vec<[Value; 8]> = (first..).zip(found).map(row).collect();
    let head = "INSERT INTO reconciliation_difference \
                (run, number, projector, check_name, kind, subject, expected, found) VALUES";
    conn.execute_rows("storing differences", head, rows, "").await.map(drop)
}

/// The next differences to repair, all of one check, and the number of the last of them.
pub(super) async fn next_differences(conn: &mut Conn<'_>, seq: i64) -> Result<Option<(Vec<Repairable>, i64)>> {
    let sql = "SELECT number, projector, check_name, kind, subject, expected, found FROM reconciliation_difference \
               WHERE run = ? ORDER BY number LIMIT ?";
    let limit = i64::try_from(RECONCILE_REPAIR_BATCH).unwrap_or(i64::MAX);
    let (mut batch, mut last): (Vec<Repairable>, i64) = (Vec::new(), 0);
    for row in conn.fetch("reading differences", sql, vec![seq.into(), limit.into()]).await? {
        let next = Repairable {
            projector: row.text(1)?,
            check: row.text(2)?,
            difference: Difference {
                kind: row.text(3)?.into(),
                subject: row.text(4)?,
                expected: row.text(5)?,
                found: row.text(6)?,
            },
        };
        let is_other = |first: &Repairable| (&first.projector, &first.check) != (&next.projector, &next.check);
        if batch.first().is_some_and(is_other) {
            break;
        }
        last = row.int(0)?;
        batch.push(next);
    }
    Ok((!batch.is_empty()).then_some((batch, last)))
}

/// Forgets the differences of a run up to a number.
pub(super) async fn remove_differences(conn: &mut Conn<'_>, seq: i64, last: i64) -> Result<()> {
    let sql = "DELETE FROM reconciliation_difference WHERE run = ? AND number <= ?";
    conn.execute("removing differences", sql, vec![seq.into(), last.into()]).await.map(drop)
}
