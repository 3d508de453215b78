//! Mirror and counters against facts, in several looks.

use std::collections::BTreeSet;

use tidings_backbone::{
    Db, Durability, Result,
    db::Engine,
    limits::RECONCILE_REPAIR_BATCH,
    reconcile::{Compared, Comparison},
};

use super::{
    cache::Doubtful,
    first::First,
    look::{Look, Waits, Wrong},
};
use crate::{
    UserId,
    limits::RECONCILE_LOOKS_MAX,
    relation::{facts::state::keep_turn, verify::Kind},
};

/// The mirror, the counters, and those of whom either is not known to be right.
pub(super) async fn compare(comparison: &Comparison<'_>) -> Result<(Compared, Compared, Doubtful)> {
    let first = First::look(comparison).await?;
    let rest = if first.is_clean() { Rest::Reached(Look::default()) } else { look_again(comparison, &first).await? };
    let mut mirror = Compared {
        shards: first.sums.shards,
        shards_differing: first.sums.differing.number(),
        rows: first.sums.facts,
        lagging: first.pairs_beyond,
        ..Compared::of("relation.mirror")
    };
    let mut of_counters =
        Compared { rows: first.users, lagging: first.suspects_beyond, ..Compared::of("relation.counters") };
    let doubtful = match rest {
        Rest::Reached(look) => tell(&mut mirror, &mut of_counters, &first, look, None),
        Rest::Behind(look) => tell(&mut mirror, &mut of_counters, &first, look, Some(BEHIND)),
        Rest::Unknown(why) => {
            mirror.lagging += first.pairs.len() as u64;
            of_counters.lagging += first.suspects.len() as u64;
            [&mut mirror, &mut of_counters].into_iter().for_each(|compared| note_lagging(compared, why));
            first.all_users()
        }
    };
    // Those beyond are not known by name.
    let doubtful = match first.pairs_beyond + first.suspects_beyond {
        0 => Doubtful::Users(doubtful),
        _ => Doubtful::Everybody,
    };
    for (kind, difference) in first.nobodies {
        let compared = if kind.is_of_counters() { &mut of_counters } else { &mut mirror };
        compared.push_unrepairable(kind.text(), || difference);
    }
    if first.nobodies_beyond > 0 {
        *mirror.kinds.entry(Kind::MirrorOfNobody.text()).or_default() += first.nobodies_beyond;
    }
    for compared in [&mut mirror, &mut of_counters] {
        if !compared.unrepairable.is_empty() {
            compared.note(UNREPAIRABLE);
        }
    }
    Ok((mirror, of_counters, doubtful))
}

const TOO_MANY_PAIRS: &str = "more rows of the mirror differ than are looked at in a run: what counters should be is \
     told when these are right";
const BEHIND: &str = "the projector, or the relay, does not catch up: whether rows whose events wait for it (lagging) \
     are wrong as well could not be told";
const SWITCHED: &str = "a rebuild has switched to another generation meanwhile";
const TOO_FAR_BEHIND: &str = "the projector, or the relay, is so far behind that what differs could not be told from \
     what is only late";
const UNREPAIRABLE: &str = "rows of no user, and of versions above 2^62, are put right by no event but by a rebuild: \
     `tidings rebuild start relation`";

/// What is known after several looks.
enum Rest {
    /// All that was on its way has come.
    Reached(Look),
    /// It has not, and what events wait for is told as lagging.
    Behind(Look),
    /// It has not, or there is no telling what is on its way.
    Unknown(&'static str),
}

/// Looks at what differed until nothing of it changes any more.
async fn look_again(comparison: &Comparison<'_>, first: &First) -> Result<Rest> {
    let mut last = Look::default();
    for _ in 0..RECONCILE_LOOKS_MAX {
        wait_for_commits(comparison.db, &last).await?;
        if !comparison.settle().await? {
            return look_while_it_waits(comparison, first).await;
        }
        let Some(look) = Look::again(comparison, first, &last, &Waits::default()).await? else {
            return Ok(Rest::Unknown(SWITCHED));
        };
        last = look;
        if last.is_certain() {
            break;
        }
    }
    Ok(Rest::Reached(last))
}

/// Where the projector does not come to rest: a difference that is the same before and after it was asked what waits,
/// and of which nothing does, is not late.
async fn look_while_it_waits(comparison: &Comparison<'_>, first: &First) -> Result<Rest> {
    let Some(before) = Look::again(comparison, first, &Look::default(), &Waits::default()).await? else {
        return Ok(Rest::Unknown(SWITCHED));
    };
    wait_for_commits(comparison.db, &before).await?;
    let Some(waiting) = comparison.waiting().await? else { return Ok(Rest::Unknown(TOO_FAR_BEHIND)) };
    let last = Look::again(comparison, first, &before, &Waits::of(&waiting)).await?;
    Ok(last.map_or(Rest::Unknown(SWITCHED), Rest::Behind))
}

/// An event can be read from the binlog, published and applied before its commit is visible in its own database. So
/// where the mirror is ahead of the facts, whoever decides for the follower at this moment is waited for.
async fn wait_for_commits(db: &Db, look: &Look) -> Result<()> {
    if db.engine() == Engine::Sqlite {
        return Ok(());
    }
    let version = |row: &Option<_>| row.as_ref().map_or(0, |row: &crate::relation::mirror::Mirrored| row.version);
    let is_ahead = |(fact, found): &(Option<_>, Option<_>)| version(found) > version(fact);
    let ahead = look.pairs.iter().filter(|(_, states)| is_ahead(states)).map(|(pair, _)| pair.from);
    let ahead: Vec<UserId> = ahead.collect::<BTreeSet<_>>().into_iter().collect();
    for users in ahead.chunks(RECONCILE_REPAIR_BATCH) {
        let mut tx = db.write(Durability::Rebuildable).await?;
        keep_turn(&mut tx.conn(), users.iter().copied().collect()).await?;
        tx.rollback().await?;
    }
    Ok(())
}

/// Tells what a look has found; answers of whom not all is known to be right.
///
/// Where it did not have all pairs in view, counters may well agree with rows that the mirror lacks beside those that
/// were seen, so none is called wrong.
fn tell(
    mirror: &mut Compared,
    of_counters: &mut Compared,
    first: &First,
    mut look: Look,
    why: Option<&str>,
) -> BTreeSet<UserId> {
    let doubtful = look.doubtful();
    mirror.lagging += look.parked + look.unsure_pairs.len() as u64;
    of_counters.lagging += look.waiting + look.unsure_users.len() as u64;
    if first.pairs_beyond > 0 {
        of_counters.lagging += look.wrong_users.len() as u64;
        look.wrong_users.clear();
        note_lagging(of_counters, TOO_MANY_PAIRS);
    }
    for (compared, unsure, wrong) in
        [(mirror, look.unsure_pairs.len(), look.wrong_pairs), (of_counters, look.unsure_users.len(), look.wrong_users)]
    {
        if let Some(why) = why.filter(|_| unsure > 0) {
            compared.note(why);
        }
        for Wrong { kind, difference, is_repairable } in wrong {
            match is_repairable {
                true => compared.push(kind.text(), || difference),
                false => compared.push_unrepairable(kind.text(), || difference),
            }
        }
    }
    doubtful
}

fn note_lagging(compared: &mut Compared, why: &str) {
    if compared.lagging > 0 {
        compared.note(why);
    }
}
