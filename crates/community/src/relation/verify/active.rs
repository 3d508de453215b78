//! Active rows, counted for those whom they are about.

use tidings_backbone::{Conn, Result, db::Engine};

use super::stretches::{Stretch, Stretches, Table};
use crate::UserId;

/// Who is counted of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Follower,
    Followed,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Follower, Self::Followed];
}

/// Counts the active rows of a table, a stretch at a time, and hands over each user several times, with a part of his
/// rows. Rows of the mirror that are of no user are told one by one, and count for nobody.
pub(super) async fn count_active(
    conn: &mut Conn<'_>,
    table: Table,
    sides: &[Side],
    mut each: impl FnMut(Side, UserId, i64),
) -> Result<()> {
    let mut stretches = Stretches::of(table);
    while let Some(stretch) = stretches.next(conn).await? {
        for side in sides {
            let sql = select_active(&stretch, conn.engine(), *side);
            for row in conn.fetch("counting active rows", sql, stretch.args()).await? {
                each(*side, UserId::read(&row, 0, table.name())?, row.int(1)?);
            }
        }
    }
    Ok(())
}

pub(super) fn select_active(stretch: &Stretch, engine: Engine, side: Side) -> String {
    let user = match side {
        Side::Follower => "r.from_user_id",
        Side::Followed => "r.to_user_id",
    };
    let of_users = match stretch.table {
        Table::Facts => "",
        Table::Mirror(_) => "AND r.to_user_id >= 0 AND r.from_user_id >= 0",
    };
    // As a sum the status is a column of no index: SQLite would look for it and not for the range.
    let more = format!("AND r.rel_status + 0 = 1 {of_users} GROUP BY {user}");
    stretch.select(engine, &format!("{user}, COUNT(*)"), "", &more)
}
