//! The loop of a ledger: gather, decide, commit, answer.

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Answered, Decide, Desk, Submission, SubmitError, Worker, batch,
    queue::{Batch, Queue},
};
use crate::{
    Error,
    clock::Stopwatch,
    db::Engine,
    error::panic_text,
    limits::{
        LEDGER_BATCH_COMMANDS_MAX, LEDGER_BATCHES_AT_ONCE, LEDGER_FURTHER_BATCH_COMMANDS_MIN, LEDGER_RACES_MAX,
        LEDGER_RETRY_GAP_MIN, LEDGER_RETRY_TIME_MAX,
    },
    telemetry, trace,
};

pub(super) async fn run<D: Decide>(worker: &mut Worker<D>, shutdown: CancellationToken) {
    let Worker { desk, receiver } = worker;
    let batches_max = if desk.db.engine() == Engine::Sqlite { 1 } else { LEDGER_BATCHES_AT_ONCE };
    let mut queue = Queue::new();
    let mut gathered = Vec::with_capacity(LEDGER_BATCH_COMMANDS_MAX);
    let mut under_way = FuturesUnordered::new();
    let mut is_ended = false;
    loop {
        while under_way.len() < batches_max {
            let min = if under_way.is_empty() { 1 } else { LEDGER_FURTHER_BATCH_COMMANDS_MIN };
            let Some(batch) = queue.take(min, LEDGER_BATCH_COMMANDS_MAX) else { break };
            under_way.push(decide(desk, batch));
        }
        let room = QUEUED_COMMANDS_MAX.saturating_sub(queue.len());
        tokio::select! {
            biased;
            Some(keys) = under_way.next() => queue.end(&keys),
            received = receiver.recv_many(&mut gathered, room), if room > 0 && !is_ended => {
                is_ended = received == 0;
                gathered.drain(..).for_each(|one: Submission<D>| queue.push(desk.decide.key(&one.command), one));
            }
            () = shutdown.cancelled(), if !receiver.is_closed() => {
                // What was accepted is still decided; from now on submitters are told "closed".
                receiver.close();
            }
            else => return,
        }
    }
}

/// Commands out of the channel: enough for a batch beside those that wait for one that is under way.
const QUEUED_COMMANDS_MAX: usize = 2 * LEDGER_BATCH_COMMANDS_MAX;

/// Decides a batch; answers its keys.
async fn decide<D: Decide>(desk: &Desk<D>, batch: Batch<D>) -> HashSet<u64> {
    let (stopwatch, commands) = (Stopwatch::start(), batch.submissions.len());
    process(desk, batch.submissions).await;
    telemetry::ledger_batch(D::NAME, commands, stopwatch.seconds());
    batch.keys
}

/// Commits a batch, halving it while the database refuses it for some command's sake.
async fn process<D: Decide>(desk: &Desk<D>, batch: Vec<Submission<D>>) {
    let mut halves = vec![batch];
    let mut may_ask_again = true;
    while let Some(mut batch) = halves.pop() {
        match commit_with_retries(desk, &batch).await {
            Ok(answers) => {
                for (submission, answer) in batch.into_iter().zip(answers) {
                    reply(submission.reply, answer);
                }
            }
            Err(error) if error.is_commit_unknown() => {
                tracing::error!(ledger = D::NAME, commands = batch.len(), error = Error::chain(&error), "unknown");
                let (keyed, others) = batch.into_iter().partition(|one| may_ask_again && one.idempotency.is_some());
                answer_unknown(others);
                // What was committed is answered from what is stored, the rest is decided.
                halves.extend(Some(keyed).filter(|keyed: &Vec<_>| !keyed.is_empty()));
                may_ask_again = false;
            }
            Err(error) if batch.len() == 1 || error.is_transient() => fail(batch, error),
            Err(_) => {
                let second = batch.split_off(batch.len() / 2);
                halves.push(second);
                halves.push(batch);
            }
        }
    }
}

fn fail<D: Decide>(batch: Vec<Submission<D>>, error: Error) {
    tracing::error!(ledger = D::NAME, commands = batch.len(), error = Error::chain(&error), "not committed");
    telemetry::ledger_failed(D::NAME, batch.len());
    let error = Arc::new(error);
    for submission in batch {
        reply(submission.reply, Err(SubmitError::Failed(Arc::clone(&error))));
    }
}

fn answer_unknown<D: Decide>(batch: Vec<Submission<D>>) {
    telemetry::ledger_failed(D::NAME, batch.len());
    for submission in batch {
        reply(submission.reply, Err(SubmitError::Unknown));
    }
}

async fn commit_with_retries<D: Decide>(desk: &Desk<D>, batch: &[Submission<D>]) -> Result<Vec<Answered<D>>, Error> {
    let mut gap = LEDGER_RETRY_GAP_MIN;
    let mut races = 0;
    let trying = Stopwatch::start();
    let mut is_first = true;
    loop {
        let committing = batch::commit(&desk.decide, &desk.db, desk.clock.now(), batch);
        let committing = trace::ledger_batch(D::NAME, batch.len(), committing);
        // A command that makes its decision panic fails alone, as one that the database refuses.
        let committed = AssertUnwindSafe(committing).catch_unwind().await.unwrap_or_else(|panic| {
            let message = format!("a decision of ledger `{}` panicked: {}", D::NAME, panic_text(&*panic));
            Err(Error::Invariant { message })
        });
        match committed {
            Err(error) if error.is_commit_unknown() => return Err(error),
            Err(error) if error.is_lost_race() && races < LEDGER_RACES_MAX => {
                races += 1;
                telemetry::ledger_retried(D::NAME, "race");
            }
            Err(error) if error.is_transient() && trying.seconds() < LEDGER_RETRY_TIME_MAX.as_secs_f64() => {
                if std::mem::take(&mut is_first) {
                    tracing::warn!(
                        ledger = D::NAME,
                        error = Error::chain(&error),
                        "the database is in trouble, retrying"
                    );
                }
                telemetry::ledger_retried(D::NAME, "trouble");
                tokio::time::sleep(gap).await;
                gap *= 2;
            }
            done => return done,
        }
    }
}

/// A client that has gone away no longer wants its answer; its command is decided all the same.
fn reply<T>(reply: oneshot::Sender<T>, answer: T) {
    drop(reply.send(answer));
}
