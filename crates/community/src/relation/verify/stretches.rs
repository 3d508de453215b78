//! Stretches of the mirror, of so few rows that a server reads each in time, however many there are in all.

use tidings_backbone::{Conn, Result, db::Value, projector::Generation};

use crate::limits::VERIFY_STEP_ROWS;

/// The stretches of a generation, one after the other: owners as a whole, or some rows of one who has many.
#[derive(Debug)]
pub(super) struct Stretches {
    generation: Generation,
    rows_max: i64,
    at: At,
}

/// Where the next one begins.
#[derive(Debug)]
enum At {
    /// Behind all rows of this owner.
    Owner(i64),
    /// In the rows of an owner, behind this follower's.
    Row(i64, i64),
    End,
}

/// A stretch, as a condition on a row of `follower`.
#[derive(Debug)]
pub(super) struct Stretch {
    generation: Generation,
    range: &'static str,
    bounds: Vec<Value>,
}

impl Stretch {
    /// The condition on the row that `alias` names.
    pub(super) fn condition(&self, alias: &str) -> String {
        format!("{alias}.generation = ? AND {}", self.range.replace("r.", &format!("{alias}.")))
    }

    /// The arguments of [`Stretch::condition`].
    pub(super) fn args(&self) -> Vec<Value> {
        [vec![self.generation.0.into()], self.bounds.clone()].concat()
    }
}

impl Stretches {
    /// All of a generation, whatever numbers damage may have made of ids.
    pub(super) fn of(generation: Generation) -> Self {
        Self { generation, rows_max: VERIFY_STEP_ROWS, at: At::Owner(i64::MIN) }
    }

    /// The next stretch, of at most [`VERIFY_STEP_ROWS`] rows; none at the end.
    pub(super) async fn next(&mut self, conn: &mut Conn<'_>) -> Result<Option<Stretch>> {
        let (range, bounds): (&'static str, Vec<Value>) = match self.at {
            At::End => return Ok(None),
            At::Owner(after) => {
                let nth = self.nth(conn, "to_user_id", "to_user_id > ?", vec![after.into()]).await?;
                self.at = nth.map_or(At::End, |owner| At::Row(owner, i64::MIN));
                match nth {
                    Some(owner) => ("r.to_user_id > ? AND r.to_user_id < ?", vec![after.into(), owner.into()]),
                    None => ("r.to_user_id > ?", vec![after.into()]),
                }
            }
            At::Row(owner, after) => {
                let rest = "to_user_id = ? AND from_user_id > ?";
                let nth = self.nth(conn, "from_user_id", rest, vec![owner.into(), after.into()]).await?;
                self.at = nth.map_or(At::Owner(owner), |last| At::Row(owner, last));
                match nth {
                    Some(last) => (
                        "r.to_user_id = ? AND r.from_user_id > ? AND r.from_user_id <= ?",
                        vec![owner.into(), after.into(), last.into()],
                    ),
                    None => ("r.to_user_id = ? AND r.from_user_id > ?", vec![owner.into(), after.into()]),
                }
            }
        };
        Ok(Some(Stretch { generation: self.generation, range, bounds }))
    }

    /// A column of the last row that a stretch may have of those in a range, if there are as many.
    async fn nth(&self, conn: &mut Conn<'_>, column: &str, range: &str, bounds: Vec<Value>) -> Result<Option<i64>> {
        let by_key = conn.engine().by_primary_key();
        let sql = format!(
            "SELECT {column} FROM follower {by_key} WHERE generation = ? AND {range} \
             ORDER BY to_user_id, from_user_id LIMIT 1 OFFSET ?"
        );
        let args = [vec![self.generation.0.into()], bounds, vec![(self.rows_max - 1).into()]].concat();
        conn.fetch_optional("stepping through the mirror", sql, args).await?.map(|row| row.int(0)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use tidings_backbone::{Db, Durability, db::BACKBONE_MIGRATIONS};
    use tidings_testkit::database::{Database, Engine, Place};

    use super::*;

    async fn count(conn: &mut Conn<'_>, condition: &str, args: Vec<Value>) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM follower m WHERE {condition}");
        conn.fetch_optional("counting", sql, args).await.unwrap().unwrap().int(0).unwrap()
    }

    #[tokio::test]
    async fn stretches_join_without_gap_or_overlap_and_none_is_long() {
        let database = Database::new(Engine::Sqlite).await;
        let Place::File(file) = &database.place else { unreachable!("it is SQLite") };
        let db = Db::open_sqlite(file).await.unwrap();
        db.migrate(&[BACKBONE_MIGRATIONS, crate::MIGRATIONS].concat()).await.unwrap();
        let mut tx = db.write(Durability::Full).await.unwrap();
        // Owners with 1 to 12 followers each, and ids that only damage makes; beside another generation.
        let owners = [i64::MIN + 1, -1, 0, 1, 2, 3, 7, 8, 9, 10, 11, i64::MAX];
        let head = "INSERT INTO follower \
                    (generation, to_user_id, from_user_id, rel_status, version, created_at, updated_at) VALUES";
        for (number, owner) in owners.into_iter().enumerate() {
            for from in 0..=number as i64 {
                let row = [1, owner, from * 3 - 2, 1, 1, 1, 1].map(Value::from);
                let other = [2, owner, from, 1, 1, 1, 1].map(Value::from);
                tx.conn().execute_rows("preparing", head, vec![row, other], "").await.unwrap();
            }
        }
        for rows_max in 1..=80 {
            let (mut rows, mut stretches) = (0, Stretches { rows_max, ..Stretches::of(Generation::FIRST) });
            let mut any = Vec::new();
            while let Some(stretch) = stretches.next(&mut tx.conn()).await.unwrap() {
                let found = count(&mut tx.conn(), &stretch.condition("m"), stretch.args()).await;
                assert!(found <= rows_max, "{found} rows in {stretch:?}");
                rows += found;
                any.push((format!("({})", stretch.condition("m")), stretch.args()));
            }
            // Together they are all: as many rows as there are, and each in one of them.
            assert_eq!(rows, 78);
            if rows_max > 9 {
                let (conditions, args): (Vec<_>, Vec<_>) = any.into_iter().unzip();
                assert_eq!(count(&mut tx.conn(), &conditions.join(" OR "), args.concat()).await, 78);
            }
        }
    }
}
