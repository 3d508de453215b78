//! Follow and unfollow: decides, changes `following`, emits the events, in one transaction.
//!
//! A whole batch of commands costs one SELECT and one upsert for each chunk of pairs; what lies
//! between is decided in memory, each command on the state that the one before it left.

pub(super) mod state;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tidings_backbone::{Conn, EventIds, Result, ledger::Decide, outbox};
use tidings_event::{
    Event, Metadata, Timestamp,
    payload::{Followed, Rest, Unfollowed},
};

use self::state::{Known, States};
use super::{Pair, counters, hot::Hot};
use crate::{
    UserId,
    envelope::{self, About},
};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `from` is to follow `to`.
    Follow,
    /// `from` is not to follow `to`.
    Unfollow,
}

/// Asks for a pair to be in a state. Asking again for the state it is in changes nothing.
#[derive(Clone, Debug)]
pub struct Command {
    /// Follow or unfollow.
    pub change: Change,
    /// The follower: whoever asks.
    pub from: UserId,
    /// The one who is followed.
    pub to: UserId,
    /// Where the request came from.
    pub metadata: Metadata,
}

/// The pair is in the state asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether this command changed it. Only then is there an event.
    pub changed: bool,
    /// Whether `from` follows `to` now.
    pub following: bool,
    /// Rises with each change of the pair; 0 for one that never changed.
    pub version: u64,
    /// Since when the follow holds; `None` when there is none.
    pub followed_at: Option<Timestamp>,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Nobody follows himself.
    Yourself,
    /// This user is not registered.
    UnknownUser(UserId),
}

impl Command {
    fn pair(&self) -> Pair {
        Pair { from: self.from, to: self.to }
    }
}

/// Decides who follows whom.
#[derive(Debug)]
pub struct Relation {
    ids: EventIds,
    hot: Option<Hot>,
}

impl Relation {
    /// A graph that takes event ids from `ids`.
    pub fn new(ids: EventIds) -> Self {
        Self { ids, hot: None }
    }

    /// The same, where lists are kept in `hot`: it is told of each change before the commit.
    #[must_use]
    pub fn with_cache(self, hot: Hot) -> Self {
        Self { hot: Some(hot), ..self }
    }
}

impl Decide for Relation {
    type Command = Command;
    type Outcome = Outcome;
    type Refusal = Refusal;

    const NAME: &'static str = "relation";

    /// Whoever asks: his events are to stand in the order in which he asked.
    fn key(&self, command: &Command) -> u64 {
        command.from.get().unsigned_abs()
    }

    async fn decide(
        &self,
        commands: &[&Command],
        at: Timestamp,
        mut conn: Conn<'_>,
    ) -> Result<Vec<Result<Outcome, Refusal>>> {
        let pairs = commands.iter().map(|command| command.pair());
        let mut states = States::load(&mut conn, pairs).await?;
        let mut events = Vec::new();
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            answers.push(self.decide_one(command, at, &mut states, &mut events)?);
        }
        // Fences must stand before the commit, not before the rows: Redis and the database work side by side.
        let writing = async {
            states.store(&mut conn).await?;
            outbox::emit(conn.reborrow(), events).await
        };
        let (unfenced, written) = futures::join!(self.fence(commands, &answers), writing);
        written?;
        // Last, since projectors wait for these rows.
        counters::raise_changes(&mut conn, &unfenced).await?;
        Ok(answers)
    }
}

impl Relation {
    /// Has the kept lists of those whose followings change ended. Answers whose lists may still be served: for
    /// them the number that a list is checked by is raised in the same transaction.
    async fn fence(&self, commands: &[&Command], answers: &[Result<Outcome, Refusal>]) -> Vec<UserId> {
        let Some(hot) = &self.hot else { return Vec::new() };
        let changed = commands.iter().zip(answers).filter(|(_, answer)| answer.is_ok_and(|outcome| outcome.changed));
        let owners: BTreeSet<UserId> = changed.map(|(command, _)| command.from).collect();
        let owners: Vec<UserId> = owners.into_iter().collect();
        let fenced = if owners.is_empty() { Ok(()) } else { hot.fence_followings(&owners).await };
        if fenced.is_err() { owners } else { Vec::new() }
    }

    fn decide_one(
        &self,
        command: &Command,
        at: Timestamp,
        states: &mut States,
        events: &mut Vec<Event>,
    ) -> Result<Result<Outcome, Refusal>> {
        if command.from == command.to {
            return Ok(Err(Refusal::Yourself));
        }
        let state = match states.get_mut(command.pair()) {
            Known::Unknown(user) => return Ok(Err(Refusal::UnknownUser(user))),
            Known::State(state) => state,
        };
        let before = *state;
        let wanted = command.change == Change::Follow;
        let changed = before.active != wanted;
        if changed {
            state.turn(wanted, at);
            events.push(self.event(command, state.version, before.since, at)?);
        }
        Ok(Ok(Outcome {
            changed,
            following: state.active,
            version: state.version,
            followed_at: state.active.then_some(state.since),
        }))
    }

    /// The event of a change at `at` to `version`; `since` is when the state before it began.
    fn event(&self, command: &Command, version: u64, since: Timestamp, at: Timestamp) -> Result<Event> {
        let (from, to) = (command.from.into(), command.to.into());
        let (about, metadata) = (About::relation(command.pair(), version), command.metadata.clone());
        match command.change {
            Change::Follow => envelope::event(
                &Followed { from, to, followed_at: at, rest: Rest::new() },
                about,
                metadata,
                at,
                &self.ids,
            ),
            Change::Unfollow => {
                let payload = Unfollowed { from, to, followed_at: since, unfollowed_at: at, rest: Rest::new() };
                envelope::event(&payload, about, metadata, at, &self.ids)
            }
        }
    }
}
