//! Registers users.

use std::collections::{HashMap, hash_map::Entry};

use serde::{Deserialize, Serialize};
use tidings_backbone::{Conn, Error, EventIds, Result, db::Value, ledger::Decide, outbox};
use tidings_event::{
    Event, Metadata, Timestamp,
    payload::{self, Rest},
};

use super::{Handle, User, UserId, read};
use crate::envelope::{self, About};

/// Asks for a user to exist.
#[derive(Clone, Debug)]
pub struct Register {
    /// The identity wanted; without one, the registry gives one past the highest.
    pub id: Option<UserId>,
    /// The unique name.
    pub handle: Handle,
    /// Where the request came from.
    pub metadata: Metadata,
}

/// The user exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The identity.
    pub user_id: UserId,
    /// The unique name.
    pub handle: Handle,
    /// Position in the dense numbering of users, from 0.
    pub ordinal: u32,
    /// Whether the user is new; the same user registered again changes nothing.
    pub changed: bool,
}

/// Why a user was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The id belongs to a user with another handle.
    UserExists,
    /// The handle belongs to another user.
    HandleTaken,
    /// No id was given, and the highest possible one is in use: name a free one.
    IdsExhausted,
}

/// Decides who is registered. Ordinals are dense and in the order of decision, since one batch at
/// a time is decided, whichever process decides it.
#[derive(Debug)]
pub struct Registry {
    ids: EventIds,
}

impl Registry {
    /// A registry that takes event ids from `ids`.
    pub fn new(ids: EventIds) -> Self {
        Self { ids }
    }
}

impl Decide for Registry {
    type Command = Register;
    type Outcome = Registered;
    type Refusal = Refusal;

    const NAME: &'static str = "user";

    async fn decide(
        &self,
        commands: &[&Register],
        at: Timestamp,
        mut conn: Conn<'_>,
    ) -> Result<Vec<Result<Registered, Refusal>>> {
        let mut known = Known::load(&mut conn, commands).await?;
        let mut events = Vec::new();
        let mut rows = Vec::new();
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            let answer = known.decide(command, at)?;
            if let Ok(registered) = &answer
                && registered.changed
            {
                rows.push(row(registered, at));
                events.push(event(registered, command, &self.ids, at)?);
            }
            answers.push(answer);
        }
        let head = "INSERT INTO account (id, handle, ordinal, created_at) VALUES";
        conn.execute_rows("registering users", head, rows, "").await?;
        outbox::emit(conn, events).await?;
        Ok(answers)
    }
}

/// What the registry holds of the users that a batch of commands names, and of those it adds.
struct Known {
    by_id: HashMap<UserId, User>,
    by_handle: HashMap<Handle, UserId>,
    /// One past the highest id; `None` when that would be out of range.
    next_id: Option<UserId>,
    next_ordinal: i64,
}

impl Known {
    async fn load(conn: &mut Conn<'_>, commands: &[&Register]) -> Result<Self> {
        let ids: Vec<UserId> = commands.iter().filter_map(|command| command.id).collect();
        let handles: Vec<&Handle> = commands.iter().map(|command| &command.handle).collect();
        read::keep_turn(conn).await?;
        let users = read::named(conn, &ids, &handles).await?;
        let (highest_id, highest_ordinal) = read::highest(conn).await?;
        Ok(Self {
            by_handle: users.iter().map(|user| (user.handle.clone(), user.user_id)).collect(),
            by_id: users.into_iter().map(|user| (user.user_id, user)).collect(),
            next_id: after(highest_id),
            next_ordinal: highest_ordinal.map_or(0, |ordinal| ordinal + 1),
        })
    }

    /// Decides one command on the state that the ones before it left.
    fn decide(&mut self, command: &Register, at: Timestamp) -> Result<Result<Registered, Refusal>> {
        if let Some(user) = command.id.and_then(|id| self.by_id.get(&id)) {
            let same = user.handle == command.handle;
            return Ok(if same { Ok(registered(user, false)) } else { Err(Refusal::UserExists) });
        }
        let Entry::Vacant(handle) = self.by_handle.entry(command.handle.clone()) else {
            return Ok(Err(Refusal::HandleTaken));
        };
        let Some(user_id) = command.id.or(self.next_id) else {
            return Ok(Err(Refusal::IdsExhausted));
        };
        let ordinal = u32::try_from(self.next_ordinal)
            .map_err(|_| Error::LimitExceeded { what: "users", limit: u32::MAX as usize })?;
        handle.insert(user_id);
        let user = User { user_id, handle: command.handle.clone(), ordinal, created_at: at };
        let answer = registered(&user, true);
        self.by_id.insert(user_id, user);
        self.next_ordinal += 1;
        if self.next_id.is_some_and(|next| user_id >= next) {
            self.next_id = after(Some(user_id));
        }
        Ok(Ok(answer))
    }
}

/// One past the highest id; the first id given is 1, since 0 looks like "none" to many clients.
fn after(highest: Option<UserId>) -> Option<UserId> {
    let highest = highest.map_or(0, UserId::get);
    UserId::try_from(highest.checked_add(1)?).ok()
}

fn registered(user: &User, changed: bool) -> Registered {
    Registered { user_id: user.user_id, handle: user.handle.clone(), ordinal: user.ordinal, changed }
}

fn row(user: &Registered, at: Timestamp) -> [Value; 4] {
    [user.user_id.into(), user.handle.as_str().into(), i64::from(user.ordinal).into(), at.0.into()]
}

fn event(user: &Registered, command: &Register, ids: &EventIds, at: Timestamp) -> Result<Event> {
    let payload = payload::Registered {
        user: user.user_id.into(),
        handle: user.handle.to_string(),
        ordinal: user.ordinal,
        rest: Rest::new(),
    };
    envelope::event(&payload, About::user("account", user.user_id, 1), command.metadata.clone(), at, ids)
}
