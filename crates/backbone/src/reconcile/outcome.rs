//! Makes the checks of a run.

use std::{sync::Arc, time::Duration};

use tidings_event::Timestamp;

use super::{
    Compared, Comparison, Reconciled, lateness,
    run::{Found, Run},
    runner::{Options, Reconciler, millis},
    sequence, shards,
    store::Repairable,
};
use crate::{Error, Result, log::Log, projector::generation};

/// What the checks of a run have found.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) checks: Vec<Found>,
    pub(super) repairable: Vec<Repairable>,
    pub(super) errors: Vec<String>,
}

/// Makes every check that is wanted.
pub(super) async fn outcome(reconciler: &Reconciler, run: &Run) -> Outcome {
    let mut outcome = Outcome::default();
    if run.projector.is_none() {
        check_path(reconciler, &mut outcome).await;
    }
    let is_wanted = |of: &&Arc<dyn Reconciled>| run.projector.as_deref().is_none_or(|name| name == of.projector());
    for reconciled in reconciler.reconciled.iter().filter(is_wanted) {
        let projector = reconciled.projector();
        match compare(reconciler, &**reconciled).await {
            Ok(compared) => compared.into_iter().for_each(|compared| outcome.add(compared, Some(projector))),
            Err(error) => outcome.fail(projector, Some(projector), &error),
        }
    }
    outcome
}

/// The checks of the path from the outbox to the log.
async fn check_path(reconciler: &Reconciler, outcome: &mut Outcome) {
    let (now, Options { relay_late, window, event_types, .. }) = (reconciler.clock.now(), &reconciler.options);
    let Log::Kafka(log) = &reconciler.log else {
        match sequence::check(&reconciler.db, before(now, *window)).await {
            Ok(compared) => outcome.add(compared, None),
            Err(error) => outcome.fail("log", None, &error),
        }
        return;
    };
    match lateness::check(log, before(now, *relay_late)).await {
        Ok(compared) => outcome.add(compared, None),
        Err(error) => outcome.fail("relay", None, &error),
    }
    let window = shards::Window { from: before(now, *window), until: before(now, *relay_late) };
    match shards::check(&reconciler.db, &reconciler.log, log, event_types, window).await {
        Ok(compared) => outcome.add(compared, None),
        Err(error) => outcome.fail("log", None, &error),
    }
}

async fn compare(reconciler: &Reconciler, reconciled: &dyn Reconciled) -> Result<Vec<Compared>> {
    loop {
        let generation = live(reconciler, reconciled).await?;
        let identity = generation.identity(reconciled.projector());
        let comparison = Comparison {
            db: &reconciler.db,
            log: &reconciler.log,
            generation,
            identity: &identity,
            event_types: reconciled.event_types(),
            patience: reconciler.options.patience,
        };
        let compared = reconciled.compare(&comparison).await?;
        // Of one that readers are not given any more nothing is maintained.
        if live(reconciler, reconciled).await? == generation {
            return Ok(compared);
        }
    }
}

async fn live(reconciler: &Reconciler, reconciled: &dyn Reconciled) -> Result<generation::Generation> {
    let mut tx = reconciler.db.glance().await?;
    generation::live(&mut tx.conn(), reconciled.projector()).await
}

impl Outcome {
    fn add(&mut self, compared: Compared, projector: Option<&str>) {
        self.checks.push(Found::of(&compared, projector));
        let Some(projector) = projector else { return };
        self.repairable.extend(compared.differences.into_iter().map(|difference| Repairable {
            projector: projector.to_owned(),
            check: compared.check.to_owned(),
            difference,
        }));
    }

    fn fail(&mut self, check: &str, projector: Option<&str>, error: &Error) {
        let error = Error::chain(error);
        tracing::warn!(check, error, "a check of the reconciliation failed");
        self.checks.push(Found::failed(check, projector, &error));
        self.errors.push(format!("{check}: {error}"));
    }
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(millis(time)))
}
