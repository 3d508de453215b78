//! How a rebuild begins: what may be asked for, and the row that says so.

use tidings_event::Timestamp;

use super::{
    Generations, Rebuilds, Refusal,
    control::refused,
    store::{self, Noted, Rebuild, Source, State, Wish},
};
use crate::{
    Conn, Durability, Error, Result,
    audit::Actor,
    idempotency::{IdempotencyKey, once},
    log::{Log, Offset, Part},
    projector::{
        Generation,
        generation::{self, keep_live},
    },
};

/// How a rebuild is to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// What is asked for.
    pub wish: Wish,
    /// Events, or rows of facts, of one second; 0 for no limit.
    pub events_per_second: u64,
    /// Whether it waits for an operator's word before readers are given it.
    pub hold: bool,
}

impl Rebuilds {
    /// Asks for a rebuild, in the name of `actor`. Processes that run the projector begin with it within a second. As
    /// with all that is asked for here, the same `key` once more is answered as it was the first time, and changes
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when it cannot be done, or another one is under way.
    pub async fn start(
        &self,
        projector: &str,
        start: Start,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Rebuild> {
        let started = once::attempt(&self.db, key, || self.try_start(projector, &start, actor, key)).await?;
        started.map_err(|refusal| refused(projector, refusal))
    }

    async fn try_start(
        &self,
        projector: &str,
        start: &Start,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Result<Rebuild, Refusal>> {
        // The log is asked before anybody who writes has to wait, and the audit is read.
        let possible = self.look_over(projector, start).await?;
        let report = self.discards(projector, &start.wish).await?;
        let mut tx = self.db.write(Durability::Full).await?;
        if let Some(answered) = once::answered(&mut tx.conn(), key).await? {
            return tx.rollback().await.map(|()| answered);
        }
        let free = match possible {
            Ok(()) => free(&mut tx.conn(), projector).await?,
            refusal => refusal,
        };
        if let Err(refusal) = free {
            return once::refused(tx, key, refusal, self.clock.now()).await;
        }
        let rebuild = self.prepare(&mut tx.conn(), projector, start, report).await?;
        store::insert(&mut tx.conn(), &rebuild).await?;
        self.note(&mut tx.conn(), "rebuild.start", &rebuild, actor).await?;
        once::done(tx, key, &rebuild, rebuild.started_at).await?;
        Ok(Ok(rebuild))
    }

    /// What [`Rebuilds::start`] would begin.
    ///
    /// # Errors
    /// As [`Rebuilds::start`].
    pub async fn would_start(&self, projector: &str, start: Start) -> Result<Rebuild> {
        let refused = |refusal| refused(projector, refusal);
        self.look_over(projector, &start).await?.map_err(refused)?;
        let report = self.discards(projector, &start.wish).await?;
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        free(&mut tx.conn(), projector).await?.map_err(refused)?;
        let rebuild = self.prepare(&mut tx.conn(), projector, &start, report).await?;
        tx.rollback().await?;
        Ok(rebuild)
    }

    async fn prepare(&self, conn: &mut Conn<'_>, projector: &str, start: &Start, report: String) -> Result<Rebuild> {
        let generation = match start.wish.in_place {
            true => keep_live(conn, projector).await?,
            false => next_generation(conn, projector).await?,
        };
        let now = self.clock.now();
        Ok(Rebuild {
            projector: projector.to_owned(),
            generation,
            state: State::Wished,
            is_paused: false,
            is_held: start.hold,
            is_forced: false,
            events_per_second: start.events_per_second,
            wish: start.wish.clone(),
            seeded: 0,
            seed_rows: None,
            removes: None,
            removed: 0,
            report,
            started_at: now,
            updated_at: now,
            finished_at: None,
            noted: Noted::default(),
            seed_cursor: None,
            foreman: String::new(),
        })
    }

    /// Whether it is possible at all.
    async fn look_over(&self, projector: &str, start: &Start) -> Result<Result<(), Refusal>> {
        match self.check_wish(projector, start) {
            Ok(()) => self.check_places(&start.wish).await,
            refusal => Ok(refusal),
        }
    }

    fn check_wish(&self, projector: &str, start: &Start) -> Result<(), Refusal> {
        let found = self.known(projector)?;
        let Wish { source, until, in_place } = &start.wish;
        let is_checked = found.generations().is_some_and(Generations::is_checked_against_facts);
        if is_checked && !in_place && matches!(source, Source::Time(_) | Source::Offset(_)) {
            return Err(Refusal::NotWhole);
        }
        let is_offset = |source: &Source| matches!(source, Source::Offset(_));
        if (is_offset(source) || until.as_ref().is_some_and(is_offset)) && matches!(self.log, Log::Kafka(_)) {
            return Err(Refusal::wish("offsets of partitions differ; say a time instead"));
        }
        if matches!(until, Some(Source::Facts | Source::Beginning)) {
            return Err(Refusal::wish("it ends at a time or an offset"));
        }
        if *in_place {
            return match (found.is_replayable(), source) {
                (false, _) => Err(Refusal::NotReplayable),
                (true, Source::Facts) => Err(Refusal::wish("facts are not copied in place")),
                (true, _) if start.hold => Err(Refusal::NothingToHold),
                (true, _) => Ok(()),
            };
        }
        match (found.generations(), source) {
            (None, _) => Err(Refusal::NotRebuildable),
            (Some(_), _) if until.is_some() => Err(Refusal::wish("only a replay in place ends before the present")),
            (Some(generations), Source::Facts) if !generations.has_facts() => Err(Refusal::NoFacts),
            _ => Ok(()),
        }
    }

    /// Refuses places that the log has not come to: what is built would be empty, and lack all that is committed
    /// before the log comes there. So is an end before the beginning: it would be said to be done, and nothing applied.
    async fn check_places(&self, wish: &Wish) -> Result<Result<(), Refusal>> {
        for place in [Some(wish.source), wish.until].into_iter().flatten() {
            match place {
                Source::Offset(offset) if Offset(offset) > self.log.extent().await?.head => {
                    return Ok(Err(Refusal::wish("the log ends before this offset")));
                }
                Source::Time(at) if at > self.clock.now() => {
                    return Ok(Err(Refusal::wish("this moment is yet to come")));
                }
                Source::Offset(_) | Source::Time(_) | Source::Beginning | Source::Facts => {}
            }
        }
        match wish.until {
            Some(until) if self.is_before(until, wish.source).await? => Ok(Err(Refusal::EndsBeforeItBegins)),
            _ => Ok(Ok(())),
        }
    }

    async fn is_before(&self, place: Source, other: Source) -> Result<bool> {
        Ok(match (place, other) {
            (Source::Time(at), Source::Time(other)) => at < other,
            (Source::Offset(at), Source::Offset(other)) => at < other,
            (Source::Time(at), Source::Offset(other)) => self.offset_since(at).await? < other,
            (Source::Offset(at), Source::Time(other)) => at < self.offset_since(other).await?,
            (Source::Beginning | Source::Facts, _) | (_, Source::Beginning | Source::Facts) => false,
        })
    }

    /// The first offset of the outbox at this moment or later.
    async fn offset_since(&self, at: Timestamp) -> Result<i64> {
        let part = Part::outbox();
        let before = self.log.before(std::slice::from_ref(&part), at).await?;
        Ok(before.get(&part).map_or(0, |before| before.0 + 1))
    }

    /// What is to be known of events that an operator discarded before the log is applied again: they are in it.
    async fn discards(&self, projector: &str, wish: &Wish) -> Result<String> {
        if wish.source == Source::Facts {
            return Ok(String::new());
        }
        let sql = "SELECT COUNT(*) FROM audit WHERE action = 'parking.discard' \
                   AND (projector = ? OR INSTR(projector, ?) = 1)";
        // Those of its later generations too.
        let args = vec![projector.into(), format!("{projector}@").into()];
        let mut tx = self.db.glance().await?;
        let row = tx.conn().fetch_optional("counting discarded events", sql, args).await?;
        Ok(match row.map_or(Ok(0), |row| row.int(0))? {
            0 => String::new(),
            1 => "1 event that an operator discarded is applied again where the log still has it, or fails again"
                .to_owned(),
            count => format!(
                "{count} events that an operator discarded are applied again where the log still has them, or fail \
                 again"
            ),
        })
    }
}

/// Whether no other one is under way, nor will be before the transaction ends.
async fn free(conn: &mut Conn<'_>, projector: &str) -> Result<Result<(), Refusal>> {
    generation::ensure(conn, projector).await?;
    // Whoever wants to begin another one at the same time waits here.
    let sql = "UPDATE projector_generation SET latest = latest WHERE projector = ?";
    conn.execute("beginning a rebuild", sql, vec![projector.into()]).await?;
    Ok(match store::find_to_write(conn, projector).await? {
        Some(before) if !before.state.is_finished() => Err(Refusal::UnderWay(before.state)),
        _ => Ok(()),
    })
}

/// The next number, which no other generation ever has.
async fn next_generation(conn: &mut Conn<'_>, projector: &str) -> Result<Generation> {
    let sql = "UPDATE projector_generation SET latest = latest + 1 WHERE projector = ?";
    conn.execute("beginning a rebuild", sql, vec![projector.into()]).await?;
    let sql = "SELECT latest FROM projector_generation WHERE projector = ?";
    let row = conn.fetch_optional("beginning a rebuild", sql, vec![projector.into()]).await?;
    let row = row.ok_or_else(|| Error::Invariant { message: "a projector has no generation".to_owned() })?;
    row.int(0).map(Generation)
}
