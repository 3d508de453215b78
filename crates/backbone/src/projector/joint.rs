//! Batches of several partitions in one transaction.
//!
//! Each partition has a task of its own, and what its events lead to is often in the same rows: two
//! transactions that add to one counter take turns, and each pays for its statements and its commit. So
//! what has gathered while the last transaction was being committed becomes one, as in the ledger: alone,
//! a batch goes alone; under load it takes others along.
//!
//! The transaction moves the position of every part that it has a batch of, by compare-and-set, so it
//! commits for all of them or for none. Whatever stands in its way, each batch is then tried alone by its
//! own task, which knows how to find the event at fault, to wait, or to give up its partition.

use std::collections::VecDeque;

use futures::{StreamExt as _, stream::FuturesUnordered};
use tidings_event::Timestamp;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

use super::{position, task::Plan};
use crate::{
    Conn, Durability, Error, Result,
    journey::trail::Left,
    limits::{POSITION_EARLY_MAX, PROJECTOR_FURTHER_BATCH_EVENTS_MIN, PROJECTOR_JOINT_AT_ONCE, PROJECTOR_SHARES_MAX},
    log::{Offset, Part, Recorded},
    trace,
};

/// Where the tasks of one projector hand in their batches. Cheap to clone; it ends with its last clone.
#[derive(Clone, Debug)]
pub(super) struct Joint(mpsc::Sender<Share>);

/// The batch of one part.
#[derive(Debug)]
struct Share {
    step: Step,
    events: Vec<Recorded>,
    reply: oneshot::Sender<Outcome>,
}

/// How a batch moves the position of its part.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) part: Part,
    pub(super) from: Offset,
    pub(super) to: Offset,
    /// When the position came to `from`.
    pub(super) since: Timestamp,
}

/// What became of a batch.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is committed, with its position, which moved at this time.
    Committed(Timestamp),
    /// Nothing of it is; these are its events.
    Alone(Vec<Recorded>),
}

impl Joint {
    /// Begins to commit what the tasks of `plan` hand in.
    pub(super) fn start(plan: &Plan, runtime: &Handle) -> Self {
        let (sender, receiver) = mpsc::channel(PROJECTOR_SHARES_MAX);
        runtime.spawn(run(plan.clone(), receiver));
        Self(sender)
    }

    /// Commits a batch together with others that are there.
    ///
    /// # Errors
    /// When nobody commits any more: a fault of this crate.
    pub(super) async fn commit(&self, step: Step, events: Vec<Recorded>) -> Result<Outcome> {
        let ended = || Error::Invariant { message: "the joint transactions of a projector ended".to_owned() };
        let (reply, outcome) = oneshot::channel();
        self.0.send(Share { step, events, reply }).await.map_err(|_| ended())?;
        outcome.await.map_err(|_| ended())
    }
}

async fn run(plan: Plan, mut receiver: mpsc::Receiver<Share>) {
    let mut waiting = VecDeque::new();
    let mut under_way = FuturesUnordered::new();
    let mut is_ended = false;
    loop {
        while under_way.len() < PROJECTOR_JOINT_AT_ONCE {
            let min = if under_way.is_empty() { 0 } else { PROJECTOR_FURTHER_BATCH_EVENTS_MIN };
            let shares = take(&mut waiting, min, plan.batch_events_max());
            if shares.is_empty() {
                break;
            }
            under_way.push(commit(&plan, shares));
        }
        tokio::select! {
            biased;
            received = receiver.recv(), if !is_ended => match received {
                Some(share) => waiting.push_back(share),
                None => is_ended = true,
            },
            Some(()) = under_way.next() => {}
            else => return,
        }
        // All that is there already, before a transaction is begun without it.
        while let Ok(share) = receiver.try_recv() {
            waiting.push_back(share);
        }
    }
}

/// The next batches, in the order in which they came, some `max` events of them; none when there are fewer than
/// `min`.
fn take(waiting: &mut VecDeque<Share>, min: usize, max: usize) -> Vec<Share> {
    let events = |shares: &[Share]| shares.iter().map(|share| share.events.len()).sum::<usize>();
    if events(waiting.make_contiguous()) < min {
        return Vec::new();
    }
    let mut shares: Vec<Share> = Vec::new();
    while let Some(next) = waiting.pop_front() {
        if !shares.is_empty() && events(&shares) + next.events.len() > max {
            waiting.push_front(next);
            break;
        }
        shares.push(next);
    }
    shares
}

async fn commit(plan: &Plan, shares: Vec<Share>) {
    let started = plan.traced();
    let (mut events, mut left) = (Vec::new(), Vec::with_capacity(shares.len()));
    for Share { step, events: of_share, reply } in shares {
        left.push((step, of_share.len(), reply));
        events.extend(of_share);
    }
    let steps: Vec<Step> = left.iter().map(|(step, ..)| step.clone()).collect();
    let committed = try_commit(plan, &events, &steps).await.unwrap_or_else(|error| {
        tracing::debug!(projector = plan.identity(), error = Error::chain(&error), "batches are tried alone");
        None
    });
    let Some(at) = committed else {
        for (_, count, reply) in left.into_iter().rev() {
            let alone = events.split_off(events.len() - count);
            drop(reply.send(Outcome::Alone(alone)));
        }
        return;
    };
    let mut rest = events.as_slice();
    let parts = left.iter().map(|(step, count, _)| (&step.part, rest.split_off(..*count).unwrap_or_default()));
    trace::applied(plan.name(), &parts.collect::<Vec<_>>(), started);
    for (.., reply) in left {
        drop(reply.send(Outcome::Committed(at)));
    }
    plan.applier(&steps[0].part).committed(&events).await;
}

/// Applies events of several parts and moves their positions; answers when, and nothing when an event is at fault.
async fn try_commit(plan: &Plan, events: &[Recorded], steps: &[Step]) -> Result<Option<Timestamp>> {
    let begun = plan.now();
    let mut tx = plan.db().write(Durability::Rebuildable).await?;
    // Before the work: whoever lost a part need not do it, and rows that others wait for are locked for less long.
    for Step { part, from, to, .. } in steps {
        position::advance(&mut tx.conn(), plan.identity(), part, *from, *to, begun).await?;
    }
    // Nothing is parked here, so it does not matter in which part's name it is applied.
    if !events.is_empty() && plan.applier(&steps[0].part).call(&mut tx.conn(), events).await?.is_err() {
        tx.rollback().await?;
        return Ok(None);
    }
    let now = ended(plan, &mut tx.conn(), steps, begun).await?;
    let left = steps.iter().map(|Step { part, from, since, .. }| Left { part, offset: *from, since: *since });
    plan.note_trail(&mut tx.conn(), left, now).await?;
    fail::fail_point!("projector-before-commit", |_| std::process::abort());
    tx.commit().await?;
    fail::fail_point!("projector-after-commit", |_| std::process::abort());
    Ok(Some(now))
}

/// When a batch is told to have been applied. That is when its work is done, and not when it began: if it took long,
/// its positions are dated anew.
async fn ended(plan: &Plan, conn: &mut Conn<'_>, steps: &[Step], begun: Timestamp) -> Result<Timestamp> {
    let now = plan.now();
    let took_ms = u128::try_from(now.0.saturating_sub(begun.0)).unwrap_or_default();
    if !plan.keeps_trail() || took_ms < POSITION_EARLY_MAX.as_millis() {
        return Ok(begun);
    }
    let moved = steps.iter().map(|Step { part, to, .. }| (part, *to));
    position::date(conn, plan.identity(), moved, now).await?;
    Ok(now)
}
