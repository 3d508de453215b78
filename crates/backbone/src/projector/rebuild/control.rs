//! What an operator may ask for: the command line and the admin API ask here alike.

use std::{fmt, sync::Arc};

use super::store::{self, Noted, Rebuild, Source, State, Wish};
use crate::{
    Clock, Conn, Db, Durability, Error, Result,
    audit::{self, Actor, Entry},
    db::Value,
    log::{Log, Offset},
    parking,
    projector::{
        Generation, Projector,
        generation::{self, keep_live},
    },
};

/// Begins, holds up, goes on with, ends and tells of rebuilds, whichever process leads them. Cheap to clone.
#[derive(Clone)]
pub struct Rebuilds {
    db: Db,
    log: Log,
    clock: Clock,
    projectors: Vec<Arc<dyn Projector>>,
}

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

/// Why an operator's wish is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No projector here has this name.
    UnknownProjector,
    /// The projector does not hold several generations.
    NotRebuildable,
    /// The projector's effects would be doubled.
    NotReplayable,
    /// The projector cannot be made from facts.
    NoFacts,
    /// The wish contradicts itself, or the log has no such place.
    Wish(&'static str),
    /// Another rebuild of the projector is under way.
    UnderWay(State),
    /// There is no rebuild, or it has ended.
    NoneUnderWay,
    /// That is not possible in this state.
    NotIn(State),
    /// Some keys of what is built are dead: it lacks their events.
    DeadKeys(i64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownProjector => f.write_str("no projector has this name"),
            Self::NotRebuildable => f.write_str("its projection holds no several generations"),
            Self::NotReplayable => f.write_str("events that are applied to it twice count twice"),
            Self::NoFacts => f.write_str("it cannot be made from facts"),
            Self::Wish(what) => f.write_str(what),
            Self::UnderWay(state) => write!(f, "a rebuild of it is under way ({})", state.name()),
            Self::NoneUnderWay => f.write_str("no rebuild of it is under way"),
            Self::NotIn(state) => write!(f, "that cannot be done while it is {}", state.name()),
            Self::DeadKeys(keys) => {
                write!(f, "{keys} of its keys are dead; redrive them, or force the switch without their events")
            }
        }
    }
}

impl Rebuilds {
    pub(in crate::projector) fn new(db: Db, log: Log, clock: Clock, projectors: Vec<Arc<dyn Projector>>) -> Self {
        Self { db, log, clock, projectors }
    }

    /// The last rebuild of each projector, by name.
    pub async fn all(&self) -> Result<Vec<Rebuild>> {
        let mut tx = self.db.read().await?;
        store::all(&mut tx.conn()).await
    }

    /// The last rebuild of a projector.
    pub async fn find(&self, projector: &str) -> Result<Option<Rebuild>> {
        Ok(self.all().await?.into_iter().find(|rebuild| rebuild.projector == projector))
    }

    /// How far a rebuild is in each part of the log, in the order of its plan.
    pub async fn positions(&self, rebuild: &Rebuild) -> Result<Vec<Option<Offset>>> {
        let found = super::check::positions(&self.db, &rebuild.identity()).await?;
        let position = |part: &store::PartPlan| {
            found.iter().find(|(other, _)| other.to_string() == part.part).map(|(_, offset)| *offset)
        };
        Ok(rebuild.parts().iter().map(position).collect())
    }

    /// Asks for a rebuild, in the name of `actor`. Processes that run the projector begin with it within a second.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when it cannot be done, or another one is under way.
    pub async fn start(&self, projector: &str, start: Start, actor: &Actor) -> Result<Rebuild> {
        self.look_over(projector, &start)?;
        self.check_places(projector, &start.wish).await?;
        let mut tx = self.db.write(Durability::Full).await?;
        let rebuild = self.prepare(&mut tx.conn(), projector, start).await?;
        store::insert(&mut tx.conn(), &rebuild).await?;
        self.note(&mut tx.conn(), "rebuild.start", &rebuild, actor).await?;
        tx.commit().await?;
        Ok(rebuild)
    }

    /// What [`Rebuilds::start`] would begin.
    ///
    /// # Errors
    /// As [`Rebuilds::start`].
    pub async fn would_start(&self, projector: &str, start: Start) -> Result<Rebuild> {
        self.look_over(projector, &start)?;
        self.check_places(projector, &start.wish).await?;
        let mut tx = self.db.write(Durability::Rebuildable).await?;
        let rebuild = self.prepare(&mut tx.conn(), projector, start).await?;
        tx.rollback().await?;
        Ok(rebuild)
    }

    async fn prepare(&self, conn: &mut Conn<'_>, projector: &str, start: Start) -> Result<Rebuild> {
        generation::ensure(conn, projector).await?;
        // Whoever wants to begin another one at the same time waits here.
        let generation = if start.wish.in_place {
            let sql = "UPDATE projector_generation SET latest = latest WHERE projector = ?";
            conn.execute("beginning a rebuild", sql, vec![projector.into()]).await?;
            keep_live(conn, projector).await?
        } else {
            next_generation(conn, projector).await?
        };
        if let Some(before) = store::find_to_write(conn, projector).await?
            && !before.state.is_finished()
        {
            return refuse(projector, Refusal::UnderWay(before.state));
        }
        let report = match start.wish.source {
            Source::Facts => String::new(),
            _ => discards(conn, projector).await?,
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
            wish: start.wish,
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

    fn look_over(&self, projector: &str, start: &Start) -> Result<()> {
        let Some(found) = self.projectors.iter().find(|known| known.name() == projector) else {
            return refuse(projector, Refusal::UnknownProjector);
        };
        let Wish { source, until, in_place } = &start.wish;
        let is_offset = |source: &Source| matches!(source, Source::Offset(_));
        if (is_offset(source) || until.as_ref().is_some_and(is_offset)) && matches!(self.log, Log::Kafka(_)) {
            return refuse(projector, Refusal::Wish("offsets of partitions differ; say a time instead"));
        }
        if matches!(until, Some(Source::Facts | Source::Beginning)) {
            return refuse(projector, Refusal::Wish("it ends at a time or an offset"));
        }
        if *in_place {
            return match (found.is_replayable(), source) {
                (false, _) => refuse(projector, Refusal::NotReplayable),
                (true, Source::Facts) => refuse(projector, Refusal::Wish("facts are not copied in place")),
                (true, _) => Ok(()),
            };
        }
        match (found.generations(), source) {
            (None, _) => refuse(projector, Refusal::NotRebuildable),
            (Some(_), _) if until.is_some() => {
                refuse(projector, Refusal::Wish("only a replay in place ends before the present"))
            }
            (Some(generations), Source::Facts) if !generations.has_facts() => refuse(projector, Refusal::NoFacts),
            _ => Ok(()),
        }
    }

    /// Refuses places that the log has not come to: what is built would be empty, and lack all that is committed
    /// before the log comes there.
    async fn check_places(&self, projector: &str, wish: &Wish) -> Result<()> {
        for place in [Some(wish.source), wish.until].into_iter().flatten() {
            match place {
                Source::Offset(offset) if Offset(offset) > self.log.extent().await?.head => {
                    return refuse(projector, Refusal::Wish("the log ends before this offset"));
                }
                Source::Time(at) if at > self.clock.now() => {
                    return refuse(projector, Refusal::Wish("this moment is yet to come"));
                }
                Source::Offset(_) | Source::Time(_) | Source::Beginning | Source::Facts => {}
            }
        }
        Ok(())
    }

    /// Holds a rebuild up, until [`Rebuilds::resume`]. It is checked again then, though the switch was forced before.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way that could be held up.
    pub async fn pause(&self, projector: &str, actor: &Actor) -> Result<Rebuild> {
        let pause = |rebuild: &Rebuild| match rebuild.state.can_pause() {
            // What was forced was so as it stood then.
            true => Ok(vec![("is_paused", 1.into()), ("is_forced", 0.into())]),
            false => Err(Refusal::NotIn(rebuild.state)),
        };
        self.change(projector, ("rebuild.pause", actor), pause).await
    }

    /// Goes on with one that was held up, at another pace if one is given; one that failed is checked again.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way.
    pub async fn resume(&self, projector: &str, events_per_second: Option<u64>, actor: &Actor) -> Result<Rebuild> {
        let resume = |rebuild: &Rebuild| {
            let mut columns: Vec<(&'static str, Value)> = vec![("is_paused", 0.into())];
            if let Some(limit) = events_per_second {
                columns.push(("events_per_second", i64::try_from(limit).unwrap_or(i64::MAX).into()));
            }
            if rebuild.state == State::Failed {
                let state = if rebuild.noted.parts.is_empty() { State::Wished } else { State::Applying };
                columns.extend([("state", state.name().into()), ("report", "".into()), ("is_forced", 0.into())]);
            }
            Ok(columns)
        };
        self.change(projector, ("rebuild.resume", actor), resume).await
    }

    /// Gives readers what is built, once it has caught up and was checked again; with `force` whatever the
    /// check says, and without the events of its dead keys.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way that readers could be given.
    pub async fn switch(&self, projector: &str, force: bool, actor: &Actor) -> Result<Rebuild> {
        let dead = match self.find(projector).await? {
            Some(rebuild) => parking::count(self.db.read().await?.conn(), &rebuild.identity()).await?.dead,
            None => 0,
        };
        let switch = |rebuild: &Rebuild| match rebuild.state {
            state if rebuild.wish.in_place => Err(Refusal::NotIn(state)),
            State::Ready | State::Failed | State::Applying | State::Checking if dead > 0 && !force => {
                Err(Refusal::DeadKeys(dead))
            }
            State::Ready | State::Failed | State::Applying | State::Checking if rebuild.noted.parts.is_empty() => {
                Err(Refusal::NotIn(rebuild.state))
            }
            State::Ready | State::Failed | State::Applying | State::Checking => Ok(vec![
                ("is_paused", 0.into()),
                ("is_held", 0.into()),
                ("is_forced", i64::from(force).into()),
                ("state", State::Applying.name().into()),
                ("report", "".into()),
            ]),
            state => Err(Refusal::NotIn(state)),
        };
        self.change(projector, ("rebuild.switch", actor), switch).await
    }

    /// Gives a rebuild up and removes what was built.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way, or readers have it already.
    pub async fn cancel(&self, projector: &str, actor: &Actor) -> Result<Rebuild> {
        let cancel = |rebuild: &Rebuild| match rebuild.state {
            State::Removing => Err(Refusal::NotIn(State::Removing)),
            _ => {
                let removes = if rebuild.wish.in_place { 0 } else { rebuild.generation.0 };
                Ok(vec![("state", State::Cancelling.name().into()), ("removes", removes.into())])
            }
        };
        self.change(projector, ("rebuild.cancel", actor), cancel).await
    }

    async fn change(
        &self,
        projector: &str,
        (action, actor): (&'static str, &Actor),
        columns: impl Fn(&Rebuild) -> Result<Vec<(&'static str, Value)>, Refusal>,
    ) -> Result<Rebuild> {
        if !self.projectors.iter().any(|known| known.name() == projector) {
            return refuse(projector, Refusal::UnknownProjector);
        }
        let mut tx = self.db.write(Durability::Full).await?;
        let found = store::find_to_write(&mut tx.conn(), projector).await?;
        let Some(rebuild) = found.filter(|rebuild| !rebuild.state.is_finished()) else {
            return refuse(projector, Refusal::NoneUnderWay);
        };
        let columns = match columns(&rebuild) {
            Ok(columns) => columns,
            Err(refusal) => return refuse(projector, refusal),
        };
        store::change(&mut tx.conn(), &rebuild, self.clock.now(), columns, None).await?;
        let changed = store::find_to_write(&mut tx.conn(), projector).await?;
        let changed =
            changed.ok_or_else(|| Error::Invariant { message: "a rebuild went while it was changed".to_owned() })?;
        self.note(&mut tx.conn(), action, &changed, actor).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// Writes to the audit, in the transaction of the action.
    async fn note(&self, conn: &mut Conn<'_>, action: &'static str, rebuild: &Rebuild, actor: &Actor) -> Result<()> {
        let details = serde_json::json!({
            "generation": rebuild.generation.0,
            "wish": rebuild.wish,
            "events_per_second": rebuild.events_per_second,
            "hold": rebuild.is_held,
            "force": rebuild.is_forced,
        });
        let entry = Entry {
            actor,
            action,
            projector: Some(&rebuild.projector),
            key: None,
            event_id: None,
            reason: None,
            details: details.to_string(),
        };
        audit::write(conn, &entry, self.clock.now()).await
    }
}

/// What is to be known of events that an operator discarded before the log is applied again: they are in it.
async fn discards(conn: &mut Conn<'_>, projector: &str) -> Result<String> {
    let sql =
        "SELECT COUNT(*) FROM audit WHERE action = 'parking.discard' AND (projector = ? OR INSTR(projector, ?) = 1)";
    // Those of its later generations too.
    let args = vec![projector.into(), format!("{projector}@").into()];
    let row = conn.fetch_optional("counting discarded events", sql, args).await?;
    Ok(match row.map_or(Ok(0), |row| row.int(0))? {
        0 => String::new(),
        count => format!(
            "{count} events that an operator discarded are applied again where the log still has them, or fail again"
        ),
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

fn refuse<T>(projector: &str, refusal: Refusal) -> Result<T> {
    Err(Error::Rebuild { projector: projector.to_owned(), refusal })
}

impl fmt::Debug for Rebuilds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuilds").field("projectors", &self.projectors.len()).finish_non_exhaustive()
    }
}
