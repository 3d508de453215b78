//! A sample of what Redis keeps against the database.
//!
//! Only what would be served can be wrong: what has the number that the database names. A list is looked at before
//! and after the database is, since followings change before their number does and a decision ends them first: one
//! that is there both times was not to have changed between. What differs is looked at once more when all that was
//! committed is applied. Users of whom mirror or counters are not known to be right are passed over: what is kept of
//! them may well be right.

use std::collections::BTreeSet;

use tidings_backbone::{
    Conn, Error, Result,
    reconcile::{Compared, Comparison, Difference},
};

use crate::{
    UserId,
    limits::{RECONCILE_CACHE_SAMPLE_MAX, RECONCILE_CACHE_USERS_MAX},
    relation::{
        counters::{self, Stored},
        generation::Of,
        hot::{Hot, Kept, KeptList, ListName},
        lists,
    },
};

const FOLLOWERS: &str = "kept followers";
const FOLLOWINGS: &str = "kept followings";
const COUNTERS: &str = "kept counters";
const KINDS: [&str; 3] = [FOLLOWERS, FOLLOWINGS, COUNTERS];

const TOO_MUCH: &str = "not compared: more differs in mirror or counters than is looked at in a run, and what is kept \
     may be right where they are not";

/// What differs, and its kind.
type Wrong = (&'static str, Difference);

/// Those of whom mirror or counters are not known to be right.
pub(super) enum Doubtful {
    Users(BTreeSet<UserId>),
    Everybody,
}

pub(super) async fn compare(hot: &Hot, comparison: &Comparison<'_>, doubtful: &Doubtful) -> Result<Compared> {
    let mut compared = Compared::of("relation.cache");
    let Doubtful::Users(doubtful) = doubtful else {
        compared.note(TOO_MUCH);
        return Ok(compared);
    };
    let mut suspects = Vec::new();
    for user in sample(hot, comparison, doubtful).await? {
        compared.rows += 1;
        let wrong = look(hot, comparison, user).await?;
        if !wrong.is_empty() {
            suspects.push((user, wrong));
        }
    }
    if suspects.is_empty() {
        return Ok(compared);
    }
    let is_settled = comparison.settle().await?;
    for (user, before) in suspects {
        let wrong = if is_settled { look(hot, comparison, user).await? } else { Vec::new() };
        // What is as wrong as it was; all else has changed.
        let (same, other): (Vec<_>, Vec<_>) = before.into_iter().partition(|difference| wrong.contains(difference));
        compared.lagging += other.len() as u64;
        same.into_iter().for_each(|(kind, difference)| compared.push(kind, || difference));
    }
    Ok(compared)
}

/// Drops what is kept of those of whom it was found to differ. Where Redis does not answer nothing is served either,
/// and the next reconciliation sees it again.
pub(super) async fn drop_kept(hot: &Hot, differences: &[Difference]) {
    let is_kept = |difference: &&Difference| KINDS.contains(&&*difference.kind);
    let users = differences.iter().filter(is_kept).filter_map(|difference| difference.subject.parse().ok());
    for user in users.collect::<BTreeSet<UserId>>() {
        if let Err(error) = hot.drop_kept(user).await {
            tracing::warn!(%user, error = Error::chain(&error), "what is kept was not dropped");
        }
    }
}

/// Users of whom anything is kept, among those that come after one by lot.
async fn sample(hot: &Hot, comparison: &Comparison<'_>, doubtful: &BTreeSet<UserId>) -> Result<Vec<UserId>> {
    let mut tx = comparison.db.read().await?;
    let mut conn = tx.conn();
    let row = conn.fetch_optional("choosing users", "SELECT MAX(ordinal) FROM account", Vec::new()).await?;
    let last = row.map_or(Ok(None), |row| row.int_or_null(0))?.unwrap_or_default().unsigned_abs();
    // Ordinals are dense, so each user is as likely as any other.
    let first = i64::try_from(hot.lot() % (last + 1)).unwrap_or_default();
    let mut users = Vec::new();
    for (from, to) in [(first, i64::MAX), (0, first)] {
        let limit = i64::try_from(RECONCILE_CACHE_USERS_MAX - users.len()).unwrap_or(0);
        let sql = "SELECT id FROM account WHERE ordinal >= ? AND ordinal < ? ORDER BY ordinal LIMIT ?";
        let rows = conn.fetch("choosing users", sql, vec![from.into(), to.into(), limit.into()]).await?;
        users.extend(rows.iter().map(|row| UserId::read(row, 0, "account")).collect::<Result<Vec<_>>>()?);
    }
    tx.rollback().await?;
    let mut kept = hot.kept_of(&users).await;
    kept.retain(|user| !doubtful.contains(user));
    kept.truncate(RECONCILE_CACHE_SAMPLE_MAX);
    Ok(kept)
}

/// What is kept of a user, would be served, and differs.
async fn look(hot: &Hot, comparison: &Comparison<'_>, user: UserId) -> Result<Vec<Wrong>> {
    // Without Redis nothing is served.
    let Ok(before) = hot.look(user).await else { return Ok(Vec::new()) };
    let mut tx = comparison.db.read().await?;
    let wrong = differing(&mut tx.conn(), user, &before).await?;
    tx.rollback().await?;
    if wrong.is_empty() {
        return Ok(wrong);
    }
    let after = hot.look(user).await.unwrap_or_default();
    let is_same = |(kind, _): &Wrong| match *kind {
        FOLLOWERS => before.followers == after.followers,
        FOLLOWINGS => before.followings == after.followings,
        _ => before.counters == after.counters,
    };
    Ok(wrong.into_iter().filter(is_same).collect())
}

async fn differing(conn: &mut Conn<'_>, user: UserId, kept: &Kept) -> Result<Vec<Wrong>> {
    let Some(Stored { counters, changes: Some(changes) }) =
        counters::read_stored(conn, Of::Live, &[user]).await?.remove(&user)
    else {
        return Ok(Vec::new());
    };
    let mut wrong = Vec::new();
    for (kind, name, list) in
        [(FOLLOWERS, ListName::Followers, &kept.followers), (FOLLOWINGS, ListName::Followings, &kept.followings)]
    {
        if let Some(list) = list.as_ref().filter(|list| list.changes == changes) {
            wrong.extend(list_differs(conn, user, kind, name, list).await?);
        }
    }
    if let (Some((found, _)), Some(expected)) = (kept.counters.filter(|(_, at)| *at == changes), counters)
        && found != expected
    {
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        wrong.push((COUNTERS, Difference { kind: COUNTERS.into(), subject: user.to_string(), expected, found }));
    }
    Ok(wrong)
}

async fn list_differs(
    conn: &mut Conn<'_>,
    user: UserId,
    kind: &'static str,
    name: ListName,
    list: &KeptList,
) -> Result<Option<Wrong>> {
    // One line more tells whether a whole list is all of it.
    let limit = list.lines.len() + usize::from(list.is_whole);
    let lines = lists::lines(conn, name, user, limit).await?;
    if lines == list.lines {
        return Ok(None);
    }
    let alike = lines.iter().zip(&list.lines).take_while(|(line, kept)| line == kept).count();
    let told = |lines: &[(UserId, tidings_event::Timestamp)]| match lines.get(alike) {
        Some((user, at)) => format!("line {}: user {user} since {}", alike + 1, at.0),
        None => format!("{} lines", lines.len()),
    };
    let (expected, found) = (told(&lines), told(&list.lines));
    Ok(Some((kind, Difference { kind: kind.into(), subject: user.to_string(), expected, found })))
}
