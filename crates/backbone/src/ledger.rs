//! The ledger commits concurrent commands together, each with its own outcome.
//!
//! While a batch is being committed, the next gathers; what has gathered is decided in one
//! transaction with set-based statements and committed once. Alone, a command waits for nobody.
//! A batch that the database refuses for one command's sake is halved until that command fails
//! alone. Where several processes write to one database, a batch that meets another process's
//! commit (a deadlock, a unique value that is there by now) is decided anew on what is there.
//!
//! Where the database has several writers, two batches may be under way at once under load; commands of
//! one key never are, so they are decided in the order in which they came.

mod batch;
mod queue;
mod worker;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde::{Serialize, de::DeserializeOwned};
use tidings_event::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Conn, Db, Error, Result, idempotency::IdempotencyKey, limits::LEDGER_QUEUE_COMMANDS_MAX, telemetry, trace,
};

/// Decides commands: reads facts, changes them and emits events, on the transaction handed in.
pub trait Decide: Send + Sync + 'static {
    /// What is asked.
    type Command: Send + Sync + 'static;
    /// What was done.
    type Outcome: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Why a command was refused: its own fault, and nothing changed.
    type Refusal: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// Names the ledger in metrics and logs.
    const NAME: &'static str;

    /// Commands of one key are decided in the order in which they came. Of different keys two batches may be
    /// decided at once, in transactions of their own, where the database allows it. Unless told otherwise, all
    /// commands have one key.
    fn key(&self, _command: &Self::Command) -> u64 {
        0
    }

    /// Decides `commands` as if one after the other, in their order. Answer `i` belongs to
    /// command `i`. An error undoes the whole batch.
    fn decide(
        &self,
        commands: &[&Self::Command],
        at: Timestamp,
        conn: Conn<'_>,
    ) -> impl Future<Output = Result<Vec<Result<Self::Outcome, Self::Refusal>>>> + Send;
}

/// Why a command was not decided.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Too many commands are waiting; nothing changed.
    #[error("too many commands are waiting")]
    Busy,
    /// The ledger is shutting down; nothing changed.
    #[error("the ledger is closed")]
    Closed,
    /// The ledger, or its connection in the middle of a commit, ended before there was an answer:
    /// the command may have been committed, or not. Asking again is safe for a command that is
    /// idempotent or carries an idempotency key. The ledger itself asks again only for the latter,
    /// since only their first answer is stored: any other could be told that it changed nothing
    /// when it had, or, where commands are not idempotent, be carried out twice.
    #[error("the ledger ended before it answered")]
    Unknown,
    /// The idempotency key was used before for something else; nothing changed.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
    /// The command could not be committed; nothing changed.
    #[error("the command could not be committed")]
    Failed(#[source] std::sync::Arc<Error>),
}

pub(crate) type Answered<D> = Result<Result<<D as Decide>::Outcome, <D as Decide>::Refusal>, SubmitError>;

struct Submission<D: Decide> {
    command: D::Command,
    idempotency: Option<IdempotencyKey>,
    reply: oneshot::Sender<Answered<D>>,
    _open: Open,
}

/// Counts a command from the moment it is submitted until it is answered.
#[derive(Debug)]
struct Open(Arc<AtomicUsize>);

impl Open {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hands commands to a ledger. Cheap to clone.
#[derive(Debug)]
pub struct Ledger<D: Decide> {
    submissions: mpsc::Sender<Submission<D>>,
    open: Arc<AtomicUsize>,
}

impl<D: Decide> Clone for Ledger<D> {
    fn clone(&self) -> Self {
        Self { submissions: self.submissions.clone(), open: Arc::clone(&self.open) }
    }
}

impl<D: Decide> Ledger<D> {
    /// Makes a ledger and the part that runs it: `(handle, worker)`.
    pub fn new(decide: D, db: Db, clock: Clock) -> (Self, Worker<D>) {
        let (sender, receiver) = mpsc::channel(LEDGER_QUEUE_COMMANDS_MAX);
        let ledger = Self { submissions: sender, open: Arc::default() };
        (ledger, Worker { desk: Desk { decide, db, clock }, receiver })
    }

    /// Decides one command; returns once its transaction is durable.
    pub async fn submit(&self, command: D::Command, idempotency: Option<IdempotencyKey>) -> Answered<D> {
        let (reply, answer) = oneshot::channel();
        let submission = Submission { command, idempotency, reply, _open: Open::begin(&self.open) };
        self.submissions.try_send(submission).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                telemetry::ledger_refused(D::NAME, "busy");
                SubmitError::Busy
            }
            mpsc::error::TrySendError::Closed(_) => {
                telemetry::ledger_refused(D::NAME, "closed");
                SubmitError::Closed
            }
        })?;
        let traced = trace::ledger_call();
        let answered = answer.await.unwrap_or(Err(SubmitError::Unknown));
        if let Some(traced) = traced {
            let error = answered.as_ref().err().map(ToString::to_string);
            traced.end(format!("ledger {}", D::NAME), trace::Kind::Internal).failed(error).tell();
        }
        answered
    }

    /// Decides many commands, waiting for room instead of failing when the ledger is busy.
    /// Answer `i` belongs to command `i`.
    pub async fn submit_all(&self, commands: impl IntoIterator<Item = D::Command>) -> Vec<Answered<D>> {
        let mut answers = Vec::new();
        for command in commands {
            let (reply, answer) = oneshot::channel();
            let submission = Submission { command, idempotency: None, reply, _open: Open::begin(&self.open) };
            let accepted = self.submissions.send(submission).await.is_ok();
            answers.push(accepted.then_some(answer));
        }
        let mut decided = Vec::with_capacity(answers.len());
        for answer in answers {
            decided.push(match answer {
                Some(answer) => answer.await.unwrap_or(Err(SubmitError::Unknown)),
                None => Err(SubmitError::Closed),
            });
        }
        decided
    }

    /// Publishes how many commands wait here; called when metrics are scraped.
    pub fn publish_gauges(&self) {
        telemetry::ledger_waiting(D::NAME, self.open.load(Ordering::Relaxed), LEDGER_QUEUE_COMMANDS_MAX);
    }
}

/// The part that runs a ledger.
#[derive(Debug)]
pub struct Worker<D: Decide> {
    desk: Desk<D>,
    receiver: mpsc::Receiver<Submission<D>>,
}

/// What a batch is decided with.
#[derive(Debug)]
struct Desk<D> {
    decide: D,
    db: Db,
    clock: Clock,
}

impl<D: Decide> Worker<D> {
    /// Runs until `shutdown`, then decides what was accepted before it and returns.
    pub async fn run(mut self, shutdown: CancellationToken) {
        worker::run(&mut self, shutdown).await;
    }
}

impl<D: Decide> std::fmt::Debug for Submission<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submission").finish_non_exhaustive()
    }
}
