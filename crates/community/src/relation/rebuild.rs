//! How the projection is rebuilt: several generations of mirror and counters stand side by side.
//!
//! From facts, the mirror is copied first, in the order in which facts were stored, ended follows included: their
//! versions keep late events from having an effect. Counters are counted from that mirror afterwards. Nobody
//! else writes to the generation meanwhile, so they agree.

use async_trait::async_trait;
use tidings_backbone::{
    Conn, Error, Result,
    db::Engine,
    log::Log,
    projector::{
        Generation,
        rebuild::{Check, Checked, Generations, Seeded},
    },
};

use super::{
    counters,
    verify::{Report, compare_generation, look_again, verify_generation},
};
use crate::{
    UserId,
    limits::{REBUILD_LOOKS_MAX, VERIFY_STEP_ROWS},
};

/// The generations of mirror and counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelationGenerations;

/// Up to where facts have been copied, as it is stored: `pairs 17` or `users 42`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// Up to this row of facts.
    Pairs(i64),
    /// All of them; and counters up to this user.
    Users(i64),
}

impl Cursor {
    fn read(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::Pairs(0)) };
        let read = |(what, number): (&str, &str)| match (what, number.parse().ok()?) {
            ("pairs", number) => Some(Self::Pairs(number)),
            ("users", number) => Some(Self::Users(number)),
            _ => None,
        };
        let malformed = || Error::MalformedRow { table: "rebuild", reason: format!("seed_cursor is `{text}`") };
        text.split_once(' ').and_then(read).ok_or_else(malformed)
    }

    fn text(self) -> String {
        match self {
            Self::Pairs(id) => format!("pairs {id}"),
            Self::Users(id) => format!("users {id}"),
        }
    }
}

#[async_trait]
impl Generations for RelationGenerations {
    async fn remove(&self, generation: Generation, limit: usize, mut conn: Conn<'_>) -> Result<u64> {
        let mut removed = 0;
        for (table, key) in [("follower", "to_user_id, from_user_id"), ("user_counter", "user_id")] {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let (sql, args) = match conn.engine() {
                Engine::Sqlite => (
                    format!(
                        "DELETE FROM {table} WHERE generation = ? AND ({key}) IN \
                         (SELECT {key} FROM {table} WHERE generation = ? LIMIT ?)"
                    ),
                    vec![generation.0.into(), generation.0.into(), limit.into()],
                ),
                // They refuse a LIMIT in a subquery, and SQLite one in a DELETE.
                Engine::Mysql | Engine::Mariadb => (
                    format!("DELETE FROM {table} WHERE generation = ? ORDER BY {key} LIMIT ?"),
                    vec![generation.0.into(), limit.into()],
                ),
            };
            removed += conn.execute("removing a generation", sql, args).await?;
            if removed > 0 {
                break;
            }
        }
        Ok(removed)
    }

    fn has_facts(&self) -> bool {
        true
    }

    fn is_checked_against_facts(&self) -> bool {
        true
    }

    async fn facts(&self, mut conn: Conn<'_>) -> Result<Option<u64>> {
        let mut rows = 0;
        for table in ["following", "account"] {
            let mut after = i64::MIN;
            while let Some((step, last)) = step(&mut conn, table, after, VERIFY_STEP_ROWS).await? {
                (rows, after) = (rows + step, last);
            }
        }
        Ok(Some(rows))
    }

    async fn seed(
        &self,
        generation: Generation,
        after: Option<&str>,
        limit: usize,
        mut conn: Conn<'_>,
    ) -> Result<Seeded> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (rows, next) = match Cursor::read(after)? {
            Cursor::Pairs(after) => match copy_pairs(&mut conn, generation, after, limit).await? {
                Some((rows, last)) => (rows, Some(Cursor::Pairs(last))),
                None => (0, Some(Cursor::Users(-1))),
            },
            Cursor::Users(after) => match count_users(&mut conn, generation, after, limit).await? {
                Some((rows, last)) => (rows, Some(Cursor::Users(last))),
                None => (0, None),
            },
        };
        Ok(Seeded { rows, next: next.map(Cursor::text) })
    }

    async fn check(&self, check: &Check<'_>) -> Result<Checked> {
        let report = match check.log {
            Log::Embedded(_) => verify_generation(check.db.read().await?, check.generation).await?,
            Log::Kafka(_) => compare_settled(check).await?,
        };
        Ok(Checked { differences: report.total(), in_flight: report.in_flight, report: told(&report) })
    }
}

/// Distributed, a pair that differs is looked at again, once all that was on its way has been applied.
async fn compare_settled(check: &Check<'_>) -> Result<Report> {
    let settle = async || {
        let message = || Error::Invariant { message: "what is built does not come to rest".to_owned() };
        if check.settle().await? { Ok(()) } else { Err(message()) }
    };
    settle().await?;
    let tx = check.db.read().await?;
    let (mut report, mut suspects) = compare_generation(tx, check.generation, check.log).await?;
    for _ in 0..REBUILD_LOOKS_MAX {
        if suspects.is_empty() {
            break;
        }
        settle().await?;
        let tx = check.db.read().await?;
        suspects = look_again(tx, check.generation, check.log, &suspects, &mut report).await?;
    }
    report.in_flight = suspects.number();
    Ok(report)
}

fn told(report: &Report) -> String {
    let counted = |count: u64, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    let way = if report.pending_events == 1 { "its way" } else { "their way" };
    let mut text = format!(
        "{}, {} and the counters of {} compared, with {} on {way}: {}",
        counted(report.facts, "fact"),
        counted(report.mirror_rows, "mirror row"),
        counted(report.users, "user"),
        counted(report.pending_events, "event"),
        counted(report.total(), "difference"),
    );
    for example in &report.examples {
        let (kind, subject, expected, found) = (example.kind, &example.subject, &example.expected, &example.found);
        text.push_str(&format!("\n{kind}, {subject}: expected {expected}, found {found}"));
    }
    text
}

/// Copies the facts after a row of theirs; answers how many, and the last of them.
async fn copy_pairs(conn: &mut Conn<'_>, generation: Generation, after: i64, limit: i64) -> Result<Option<(u64, i64)>> {
    let Some((rows, last)) = step(conn, "following", after, limit).await? else { return Ok(None) };
    let sql = "INSERT INTO follower \
               (generation, to_user_id, from_user_id, rel_status, version, created_at, updated_at) \
               SELECT ?, to_user_id, from_user_id, rel_status, version, created_at, updated_at \
               FROM following WHERE id > ? AND id <= ? ORDER BY to_user_id, from_user_id";
    conn.execute("copying facts", sql, vec![generation.0.into(), after.into(), last.into()]).await?;
    Ok(Some((rows, last)))
}

/// How many of the `limit` rows after one of them there are, and the last of them.
async fn step(conn: &mut Conn<'_>, table: &'static str, after: i64, limit: i64) -> Result<Option<(u64, i64)>> {
    let row = conn.fetch_optional("counting facts", select_step(table), vec![after.into(), limit.into()]).await?;
    let Some(row) = row else { return Ok(None) };
    let rows = u64::try_from(row.int(0)?).unwrap_or_default();
    Ok(row.int_or_null(1)?.map(|last| (rows, last)))
}

pub(super) fn select_step(table: &str) -> String {
    format!("SELECT COUNT(*), MAX(id) FROM (SELECT id FROM {table} WHERE id > ? ORDER BY id LIMIT ?) AS step")
}

/// Counts for the users after one of them; answers for how many, and the last of them.
async fn count_users(
    conn: &mut Conn<'_>,
    generation: Generation,
    after: i64,
    limit: i64,
) -> Result<Option<(u64, i64)>> {
    let sql = "SELECT id, created_at FROM account WHERE id > ? ORDER BY id LIMIT ?";
    let rows = conn.fetch("counting users", sql, vec![after.into(), limit.into()]).await?;
    let users = rows.iter().map(|row| UserId::read(row, 0, "account")).collect::<Result<Vec<_>>>()?;
    let Some(last) = users.last() else { return Ok(None) };
    counters::seed(conn, generation, &users).await?;
    Ok(Some((users.len() as u64, last.get())))
}

#[cfg(test)]
mod tests {
    use tidings_backbone::log::Offset;

    use super::*;
    use crate::relation::verify::Kind;

    #[test]
    fn of_one_thing_the_report_speaks_in_the_singular() {
        let mut report = Report::new(Offset(1), 1);
        (report.facts, report.mirror_rows, report.users) = (1, 1, 1);
        report.differences.insert(Kind::MirrorMissing, 1);
        let said = "1 fact, 1 mirror row and the counters of 1 user compared, with 1 event on its way: 1 difference";
        assert_eq!(told(&report), said);
        let none = told(&Report::new(Offset(0), 0));
        assert!(
            none.ends_with("the counters of 0 users compared, with 0 events on their way: 0 differences"),
            "{none}"
        );
    }

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        for cursor in [Cursor::Pairs(0), Cursor::Pairs(17), Cursor::Users(-1), Cursor::Users(i64::MAX)] {
            assert_eq!(Cursor::read(Some(&cursor.text())).unwrap(), cursor);
        }
        assert_eq!(Cursor::read(None).unwrap(), Cursor::Pairs(0));
        for text in ["", "pairs", "pairs x", "rows 1"] {
            assert!(Cursor::read(Some(text)).is_err(), "{text}");
        }
    }
}
