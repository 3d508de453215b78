//! Removing a generation that nobody reads: first its positions, so that whoever still writes to it fails; then
//! its parking lot, its trail and its rows, in small transactions.

use std::time::Duration;

use super::{
    foreman::Foreman,
    store::{Rebuild, State, replay_identity},
};
use crate::{
    Conn, Durability, Result,
    db::Engine,
    limits::REBUILD_REMOVE_ROWS,
    projector::{Generation, position},
};

/// Pause between two transactions, for those who want to write meanwhile.
const GAP: Duration = Duration::from_millis(5);

/// Removes some more.
pub(super) async fn step(foreman: &Foreman, rebuild: &Rebuild) -> Result<Duration> {
    let ended = match rebuild.state {
        State::Cancelling => State::Cancelled,
        _ => State::Done,
    };
    let identity = match rebuild.removes {
        Some(generation) => generation.identity(&rebuild.projector),
        None => replay_identity(&rebuild.projector),
    };
    let mut tx = foreman.plan.db().write(Durability::Rebuildable).await?;
    position::remove(&mut tx.conn(), &identity).await?;
    let mut removed = remove_lot(&mut tx.conn(), &identity).await?;
    if removed == 0
        && let Some(Generation(number)) = rebuild.removes
    {
        let limit = REBUILD_REMOVE_ROWS;
        removed = foreman.generations()?.remove(Generation(number), limit, tx.conn()).await?;
    }
    let is_over = removed == 0;
    let total = i64::try_from(rebuild.removed.saturating_add(removed)).unwrap_or(i64::MAX);
    let mut columns = vec![("removed", total.into())];
    if is_over {
        columns.push(("finished_at", foreman.plan.clock().now().0.into()));
    }
    foreman.commit(tx, rebuild, if is_over { ended } else { rebuild.state }, columns).await?;
    Ok(GAP)
}

/// Ends a replay in place, all of whose events were applied.
pub(super) async fn end_replay(foreman: &Foreman, rebuild: &Rebuild) -> Result<Duration> {
    let tx = foreman.plan.db().write(Durability::Rebuildable).await?;
    foreman.commit(tx, rebuild, State::Removing, Vec::new()).await?;
    Ok(Duration::ZERO)
}

/// Removes some of what waits in a parking lot, and of the trail; answers how much.
async fn remove_lot(conn: &mut Conn<'_>, identity: &str) -> Result<u64> {
    let mut removed = 0;
    for (table, key) in [
        ("parked_event", "part, event_key, log_offset"),
        ("parked_key", "part, event_key"),
        ("projector_trail", "part, log_offset"),
        ("applied_late", "part, log_offset"),
    ] {
        let sql = match conn.engine() {
            Engine::Sqlite => format!(
                "DELETE FROM {table} WHERE projector = ? AND ({key}) IN \
                 (SELECT {key} FROM {table} WHERE projector = ? LIMIT ?)"
            ),
            Engine::Mysql | Engine::Mariadb => {
                format!("DELETE FROM {table} WHERE projector = ? ORDER BY {key} LIMIT ?")
            }
        };
        let mut args = vec![identity.into()];
        if conn.engine() == Engine::Sqlite {
            args.push(identity.into());
        }
        args.push(i64::try_from(REBUILD_REMOVE_ROWS).unwrap_or(i64::MAX).into());
        removed += conn.execute("removing what a generation left", sql, args).await?;
    }
    Ok(removed)
}
