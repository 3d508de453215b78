//! The foreman: the one process that leads a rebuild from state to state.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    catching_up,
    check::{Check, Generations},
    removal,
    store::{self, Noted, PartPlan, Rebuild, Source, State},
    switching,
};
use crate::{
    Durability, Error, Result, Tx,
    clock::Stopwatch,
    db::Value,
    limits::{PROJECTOR_BACKOFF_MAX, PROJECTOR_BACKOFF_MIN, REBUILD_SEED_ROWS, REBUILD_SETTLE_TIME_MAX},
    log::{Log, Offset, Part},
    parking,
    projector::{pace::Pace, position, task::Plan},
};

/// Leads the rebuild of one projector while it holds the lead.
#[derive(Clone, Debug)]
pub(in crate::projector) struct Foreman {
    pub(super) plan: Plan,
    pub(super) log: Log,
    /// The name that this process leads under.
    name: Arc<str>,
}

/// How often a foreman looks whether what he waits for has come about.
pub(super) const LOOK_GAP: Duration = Duration::from_millis(100);

impl Foreman {
    pub(in crate::projector) fn new(plan: Plan, log: Log, name: Arc<str>) -> Self {
        Self { plan, log, name }
    }

    /// Leads until there is nothing to lead, or somebody else does.
    pub(in crate::projector) async fn lead(self, shutdown: CancellationToken) {
        let working = async {
            let mut backoff = PROJECTOR_BACKOFF_MIN;
            loop {
                let pause = match self.step().await {
                    Ok(Some(pause)) => {
                        backoff = PROJECTOR_BACKOFF_MIN;
                        pause
                    }
                    Ok(None) => return,
                    Err(error) => {
                        let (projector, error) = (self.plan.name(), Error::chain(&error));
                        tracing::warn!(projector, error, pause_ms = backoff.as_millis(), "the rebuild waits");
                        backoff = (backoff * 2).min(PROJECTOR_BACKOFF_MAX);
                        backoff
                    }
                };
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            () = working => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Does what is next; answers how long to wait before the step after it, or nothing at the end.
    async fn step(&self) -> Result<Option<Duration>> {
        let look = store::look(self.plan.db(), self.plan.name()).await?;
        let Some(rebuild) = look.and_then(|look| look.rebuild) else { return Ok(None) };
        if !rebuild.needs_foreman() || rebuild.foreman != *self.name {
            return Ok(None);
        }
        let stepped = match rebuild.state {
            State::Wished => self.note(&rebuild).await,
            State::Seeding => self.seed(&rebuild).await,
            State::Applying => catching_up::catch_up(self, &rebuild).await,
            State::Checking => self.check(&rebuild).await,
            State::Removing | State::Cancelling => removal::step(self, &rebuild).await,
            State::Ready | State::Failed | State::Done | State::Cancelled => return Ok(None),
        };
        match stepped {
            Ok(pause) => Ok(Some(pause)),
            // Of these nothing is repaired by waiting.
            Err(error @ (Error::HistoryMissing { .. } | Error::Rebuild { .. })) => {
                self.fail(&rebuild, Error::chain(&error)).await.map(Some)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn generations(&self) -> Result<&dyn Generations> {
        let missing = || Error::Invariant { message: format!("`{}` cannot be rebuilt any more", self.plan.name()) };
        self.plan.projector().generations().ok_or_else(missing)
    }

    /// Moves on to another state, with what a transaction has done; nothing of it stays if somebody else did,
    /// leads now, or has held it up: the next look finds out.
    pub(super) async fn commit(
        &self,
        mut tx: Tx,
        rebuild: &Rebuild,
        state: State,
        mut columns: Vec<(&'static str, Value)>,
    ) -> Result<()> {
        columns.push(("state", state.name().into()));
        let now = self.plan.clock().now();
        if !store::change(&mut tx.conn(), rebuild, now, columns, Some(&self.name)).await? {
            return tx.rollback().await;
        }
        tx.commit().await?;
        if state != rebuild.state {
            let (projector, generation) = (&*rebuild.projector, rebuild.generation.0);
            tracing::info!(projector, generation, state = state.name(), "the rebuild goes on");
        }
        Ok(())
    }

    pub(super) async fn fail(&self, rebuild: &Rebuild, report: String) -> Result<Duration> {
        tracing::error!(projector = rebuild.projector, generation = rebuild.generation.0, report, "the rebuild failed");
        let tx = self.plan.db().write(Durability::Full).await?;
        self.commit(tx, rebuild, State::Failed, vec![("report", report.into())]).await?;
        Ok(Duration::ZERO)
    }

    /// Notes where the log stands, and gives what is built its positions.
    async fn note(&self, rebuild: &Rebuild) -> Result<Duration> {
        let parts = self.log.parts(self.plan.projector().event_types());
        let ends = self.log.ends(parts.iter().cloned().collect()).await?;
        let starts = self.starts(rebuild, &parts, &ends).await?;
        let (starts, from_facts) = match starts {
            Some(starts) => (starts, false),
            None => (ends.clone(), true),
        };
        let ends = match rebuild.wish.until {
            Some(until) => self.places(until, &parts, &ends).await?,
            None => ends,
        };
        let plan = |part: &Part| PartPlan {
            part: part.to_string(),
            start: starts.get(part).map_or(self.plan.before_first().0, |start| start.0),
            end: ends.get(part).map_or(self.plan.before_first().0, |end| end.0),
        };
        let noted = Noted { from_facts, parts: parts.iter().map(plan).collect() };
        let seed_rows = if from_facts { self.facts().await } else { None };
        let mut tx = self.plan.db().write(Durability::Full).await?;
        let (identity, now) = (rebuild.identity(), self.plan.clock().now());
        position::remove(&mut tx.conn(), &identity).await?;
        for (part, plan) in parts.iter().zip(&noted.parts) {
            position::set(&mut tx.conn(), &identity, part, Offset(plan.start), now).await?;
        }
        // With this commit all is to be seen that was committed before the ends were noted, also what is in
        // the binlog before it can be read in the database: commits become visible in the binlog's order.
        let state = if from_facts { State::Seeding } else { State::Applying };
        let columns = vec![("plan", store::to_json(&noted)?.into()), ("seed_rows", seed_rows.into())];
        self.commit(tx, rebuild, state, columns).await?;
        Ok(Duration::ZERO)
    }

    /// Rows of facts there are, unless that cannot be told: only the progress that is shown depends on it. They
    /// are counted before there is a transaction to write, since that takes long.
    async fn facts(&self) -> Option<i64> {
        let count = async {
            let mut tx = self.plan.db().read().await?;
            self.generations()?.facts(tx.conn()).await
        };
        match count.await {
            Ok(rows) => rows.map(|rows| i64::try_from(rows).unwrap_or(i64::MAX)),
            Err(error) => {
                tracing::warn!(projector = self.plan.name(), error = Error::chain(&error), "facts were not counted");
                None
            }
        }
    }

    /// The positions to begin with; nothing where facts are to be read.
    async fn starts(
        &self,
        rebuild: &Rebuild,
        parts: &[Part],
        ends: &BTreeMap<Part, Offset>,
    ) -> Result<Option<BTreeMap<Part, Offset>>> {
        let starts = match rebuild.wish.source {
            Source::Facts => return Ok(None),
            source => self.places(source, parts, ends).await?,
        };
        let earliest = self.log.earliest(parts).await?;
        for (part, start) in &starts {
            let (needed, earliest) = (start.0 + 1, earliest.get(part).map_or(0, |earliest| earliest.0));
            if earliest <= needed {
                continue;
            }
            let has_facts = self.plan.projector().generations().is_some_and(Generations::has_facts);
            if has_facts && rebuild.wish.source == Source::Beginning && !rebuild.wish.in_place {
                return Ok(None);
            }
            return Err(Error::HistoryMissing { projector: rebuild.projector.clone(), needed, earliest });
        }
        Ok(Some(starts))
    }

    /// The last offset before a place, in each part.
    async fn places(
        &self,
        place: Source,
        parts: &[Part],
        ends: &BTreeMap<Part, Offset>,
    ) -> Result<BTreeMap<Part, Offset>> {
        let all = |offset: Offset| parts.iter().map(|part| (part.clone(), offset)).collect();
        Ok(match place {
            Source::Beginning => all(self.plan.before_first()),
            Source::Facts => ends.clone(),
            Source::Offset(offset) => all(Offset((offset - 1).max(self.plan.before_first().0))),
            Source::Time(at) => self.log.before(parts, at).await?,
        })
    }

    /// Copies a chunk of facts.
    async fn seed(&self, rebuild: &Rebuild) -> Result<Duration> {
        let pace = Pace::default();
        if rebuild.events_per_second > 0 {
            pace.limit(rebuild.events_per_second, 1);
        }
        let (stopwatch, limit) = (Stopwatch::start(), pace.batch_events_max(REBUILD_SEED_ROWS));
        let mut tx = self.plan.db().write(Durability::Rebuildable).await?;
        let cursor = rebuild.seed_cursor.as_deref();
        let seeded = self.generations()?.seed(rebuild.generation, cursor, limit, tx.conn()).await?;
        let total = rebuild.seeded.saturating_add(seeded.rows);
        let state = if seeded.next.is_some() { State::Seeding } else { State::Applying };
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        let columns = vec![("seed_cursor", seeded.next.into()), ("seeded", total.into())];
        fail::fail_point!("rebuild-before-seed-commit", |_| std::process::abort());
        self.commit(tx, rebuild, state, columns).await?;
        let rows = usize::try_from(seeded.rows).unwrap_or(usize::MAX);
        Ok(pace.rest(rows, stopwatch.seconds()).unwrap_or_default())
    }

    /// Compares what is built with facts; readers are given it if it is right.
    async fn check(&self, rebuild: &Rebuild) -> Result<Duration> {
        let identity = rebuild.identity();
        let parked = {
            let mut tx = self.plan.db().read().await?;
            parking::count(tx.conn(), &identity).await?
        };
        let dead = parked.dead;
        if parked.tried() > 0 && !rebuild.is_forced {
            return Ok(LOOK_GAP);
        }
        if dead > 0 && !rebuild.is_forced {
            let report = match dead {
                1 => "1 key is dead: what is built lacks its events".to_owned(),
                _ => format!("{dead} keys are dead: what is built lacks their events"),
            };
            return self.fail(rebuild, report).await;
        }
        if rebuild.wish.in_place {
            return removal::end_replay(self, rebuild).await;
        }
        let (generation, event_types) = (rebuild.generation, self.plan.projector().event_types());
        let (db, log, patience) = (self.plan.db(), &self.log, REBUILD_SETTLE_TIME_MAX);
        let check = Check { db, log, generation, identity: &identity, event_types, patience };
        let checked = self.generations()?.check(&check).await?;
        if checked.differences > 0 && !rebuild.is_forced {
            return self.fail(rebuild, checked.report).await;
        }
        if checked.in_flight > 0 && !rebuild.is_forced {
            // It changes faster than can be looked at; another look may find it still.
            return Ok(LOOK_GAP);
        }
        if rebuild.is_held {
            let tx = self.plan.db().write(Durability::Full).await?;
            self.commit(tx, rebuild, State::Ready, vec![("report", checked.report.into())]).await?;
            return Ok(Duration::ZERO);
        }
        switching::switch(self, rebuild, checked.report).await
    }
}
