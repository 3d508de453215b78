//! What an operator may ask for: the command line and the admin API ask here alike.

use std::{fmt, sync::Arc};

use super::{
    Refusal,
    store::{self, Rebuild, State},
};
use crate::{
    Clock, Conn, Db, Durability, Error, Result,
    audit::{self, Actor, Entry},
    db::Value,
    idempotency::{IdempotencyKey, once},
    log::{Log, Offset},
    parking,
    projector::Projector,
};

/// Begins, holds up, goes on with, ends and tells of rebuilds, whichever process leads them. Cheap to clone.
#[derive(Clone)]
pub struct Rebuilds {
    pub(super) db: Db,
    pub(super) log: Log,
    pub(super) clock: Clock,
    projectors: Vec<Arc<dyn Projector>>,
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

    /// The rebuild of a projector that is under way.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when there is none.
    pub async fn under_way(&self, projector: &str) -> Result<Rebuild> {
        self.known(projector).map_err(|refusal| refused(projector, refusal))?;
        let found = self.find(projector).await?.filter(|rebuild| !rebuild.state.is_finished());
        found.ok_or_else(|| refused(projector, Refusal::NoneUnderWay))
    }

    /// How far a rebuild is in each part of the log, in the order of its plan.
    pub async fn positions(&self, rebuild: &Rebuild) -> Result<Vec<Option<Offset>>> {
        let found = super::check::positions(&self.db, &rebuild.identity()).await?;
        let position = |part: &store::PartPlan| {
            found.iter().find(|(other, _)| other.to_string() == part.part).map(|(_, offset)| *offset)
        };
        Ok(rebuild.parts().iter().map(position).collect())
    }

    /// The projector of this name.
    pub(super) fn known(&self, projector: &str) -> Result<&dyn Projector, Refusal> {
        let known = self.projectors.iter().find(|known| known.name() == projector);
        known.map(|known| &**known).ok_or(Refusal::UnknownProjector)
    }

    /// Holds a rebuild up, until [`Rebuilds::resume`]. It is checked again then, though the switch was forced before.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way that could be held up.
    pub async fn pause(&self, projector: &str, actor: &Actor, key: Option<&IdempotencyKey>) -> Result<Rebuild> {
        let pause = |rebuild: &Rebuild| match rebuild.state.can_pause() {
            // What was forced was so as it stood then.
            true => Ok(vec![("is_paused", 1.into()), ("is_forced", 0.into())]),
            false => Err(Refusal::NotIn(rebuild.state)),
        };
        self.change(projector, ("rebuild.pause", actor, key), pause).await
    }

    /// Goes on with one that was held up, at another pace if one is given; one that failed is checked again.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way.
    pub async fn resume(
        &self,
        projector: &str,
        events_per_second: Option<u64>,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Rebuild> {
        let resume = |rebuild: &Rebuild| {
            let mut columns: Columns = vec![("is_paused", 0.into())];
            if let Some(limit) = events_per_second {
                columns.push(("events_per_second", i64::try_from(limit).unwrap_or(i64::MAX).into()));
            }
            if rebuild.state == State::Failed {
                let state = if rebuild.noted.parts.is_empty() { State::Wished } else { State::Applying };
                columns.extend([("state", state.name().into()), ("report", "".into()), ("is_forced", 0.into())]);
            }
            Ok(columns)
        };
        self.change(projector, ("rebuild.resume", actor, key), resume).await
    }

    /// Gives readers what is built, once it has caught up and was checked again; with `force` whatever the
    /// check says, and without the events of its dead keys.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way that readers could be given.
    pub async fn switch(
        &self,
        projector: &str,
        force: bool,
        actor: &Actor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Rebuild> {
        let dead = self.dead_keys(projector).await?;
        self.change(projector, ("rebuild.switch", actor, key), |rebuild| switched(rebuild, force, dead)).await
    }

    /// What [`Rebuilds::switch`] would give readers, as it stands now.
    ///
    /// # Errors
    /// As [`Rebuilds::switch`].
    pub async fn would_switch(&self, projector: &str, force: bool) -> Result<Rebuild> {
        let dead = self.dead_keys(projector).await?;
        self.would_change(projector, |rebuild| switched(rebuild, force, dead)).await
    }

    /// Keys of what is built that are dead.
    async fn dead_keys(&self, projector: &str) -> Result<i64> {
        Ok(match self.find(projector).await? {
            Some(rebuild) => parking::count(self.db.read().await?.conn(), &rebuild.identity()).await?.dead,
            None => 0,
        })
    }

    /// Gives a rebuild up and removes what was built.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when none is under way, or readers have it already.
    pub async fn cancel(&self, projector: &str, actor: &Actor, key: Option<&IdempotencyKey>) -> Result<Rebuild> {
        self.change(projector, ("rebuild.cancel", actor, key), cancelled).await
    }

    /// What [`Rebuilds::cancel`] would give up, as it stands now.
    ///
    /// # Errors
    /// As [`Rebuilds::cancel`].
    pub async fn would_cancel(&self, projector: &str) -> Result<Rebuild> {
        self.would_change(projector, cancelled).await
    }

    async fn would_change(
        &self,
        projector: &str,
        columns: impl Fn(&Rebuild) -> Result<Columns, Refusal>,
    ) -> Result<Rebuild> {
        let rebuild = self.under_way(projector).await?;
        match columns(&rebuild) {
            Ok(_) => Ok(rebuild),
            Err(refusal) => Err(refused(projector, refusal)),
        }
    }

    async fn change(
        &self,
        projector: &str,
        (action, actor, key): (&'static str, &Actor, Option<&IdempotencyKey>),
        columns: impl Fn(&Rebuild) -> Result<Columns, Refusal>,
    ) -> Result<Rebuild> {
        let act = || self.try_change(projector, (action, actor, key), &columns);
        let changed = once::attempt(&self.db, key, act).await?;
        changed.map_err(|refusal| refused(projector, refusal))
    }

    async fn try_change(
        &self,
        projector: &str,
        (action, actor, key): (&'static str, &Actor, Option<&IdempotencyKey>),
        columns: impl Fn(&Rebuild) -> Result<Columns, Refusal>,
    ) -> Result<Result<Rebuild, Refusal>> {
        let now = self.clock.now();
        let mut tx = self.db.write(Durability::Full).await?;
        if let Some(answered) = once::answered(&mut tx.conn(), key).await? {
            return tx.rollback().await.map(|()| answered);
        }
        let found = store::find_to_write(&mut tx.conn(), projector).await?;
        let under_way = found.filter(|rebuild| !rebuild.state.is_finished());
        let wanted = self.known(projector).and_then(|_| {
            let rebuild = under_way.ok_or(Refusal::NoneUnderWay)?;
            columns(&rebuild).map(|columns| (rebuild, columns))
        });
        let (rebuild, columns) = match wanted {
            Ok(wanted) => wanted,
            Err(refusal) => return once::refused(tx, key, refusal, now).await,
        };
        store::change(&mut tx.conn(), &rebuild, now, columns, None).await?;
        let changed = store::find_to_write(&mut tx.conn(), projector).await?;
        let changed =
            changed.ok_or_else(|| Error::Invariant { message: "a rebuild went while it was changed".to_owned() })?;
        self.note(&mut tx.conn(), action, &changed, actor).await?;
        once::done(tx, key, &changed, now).await?;
        Ok(Ok(changed))
    }

    /// Writes to the audit, in the transaction of the action.
    pub(super) async fn note(
        &self,
        conn: &mut Conn<'_>,
        action: &'static str,
        rebuild: &Rebuild,
        actor: &Actor,
    ) -> Result<()> {
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

/// What an action changes of a rebuild.
type Columns = Vec<(&'static str, Value)>;

fn switched(rebuild: &Rebuild, force: bool, dead: i64) -> Result<Columns, Refusal> {
    match rebuild.state {
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
    }
}

fn cancelled(rebuild: &Rebuild) -> Result<Columns, Refusal> {
    if rebuild.state == State::Removing {
        return Err(Refusal::NotIn(State::Removing));
    }
    let removes = if rebuild.wish.in_place { 0 } else { rebuild.generation.0 };
    Ok(vec![("state", State::Cancelling.name().into()), ("removes", removes.into())])
}

pub(super) fn refused(projector: &str, refusal: Refusal) -> Error {
    Error::Rebuild { projector: projector.to_owned(), refusal }
}

impl fmt::Debug for Rebuilds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuilds").field("projectors", &self.projectors.len()).finish_non_exhaustive()
    }
}
