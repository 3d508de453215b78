//! Loads many follows through the ledgers: the same decisions, the same events as one at a time.
//! The token bucket is at the door of HTTP, so it does not apply here.

use std::collections::{BTreeSet, HashSet};

use tidings_backbone::{
    Db,
    ledger::{Decide, SubmitError},
};
use tidings_community::{
    Pair, UserId,
    relation::facts::{Change, Command, Refusal},
    user::{
        Handle,
        facts::{Register, Registry},
        read,
    },
};
use tidings_event::Metadata;

use crate::{Error, Result, ledgers::Ledgers};

/// Users remembered as registered; beyond, the database is asked again.
const KNOWN_USERS_MAX: usize = 1_000_000;

/// Loads follows, and registers whom they name.
#[derive(Debug)]
pub struct Loader {
    db: Db,
    ledgers: Ledgers,
    /// Users seen in the registry. Users are never removed.
    known: HashSet<UserId>,
}

/// What became of a batch of follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Users registered first.
    pub users_added: u64,
    /// Follows that are new.
    pub changed: u64,
    /// Follows that were there.
    pub unchanged: u64,
    /// Follows that were refused: the place in the batch, and why.
    pub refused: Vec<(usize, Refusal)>,
}

impl Loader {
    /// A loader that writes by `ledgers`, which work on `db`.
    pub fn new(db: Db, ledgers: Ledgers) -> Self {
        Self { db, ledgers, known: HashSet::new() }
    }

    /// Makes every pair a follow; returns once all are durable. A pair is refused if one of the two
    /// could not be registered, since `user-ID` is the handle of somebody else.
    ///
    /// # Errors
    /// When the database fails; some of the pairs may be follows then, and loading again is safe.
    pub async fn follow(&mut self, pairs: &[Pair]) -> Result<Loaded> {
        let users = pairs.iter().flat_map(|pair| [pair.from, pair.to]);
        let mut loaded = Loaded { users_added: self.register(users).await?, ..Loaded::default() };
        let commands = pairs.iter().map(|pair| Command {
            change: Change::Follow,
            from: pair.from,
            to: pair.to,
            metadata: Metadata::default(),
        });
        for (place, answer) in self.ledgers.relations.submit_all(commands).await.into_iter().enumerate() {
            match answer? {
                Ok(outcome) if outcome.changed => loaded.changed += 1,
                Ok(_) => loaded.unchanged += 1,
                Err(refusal) => loaded.refused.push((place, refusal)),
            }
        }
        Ok(loaded)
    }

    /// Registers those of `users` who are not, as `user-ID`, in the order of their ids. Answers how
    /// many are new.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn register(&mut self, users: impl IntoIterator<Item = UserId>) -> Result<u64> {
        if self.known.len() > KNOWN_USERS_MAX {
            self.known.clear();
        }
        let unseen: BTreeSet<UserId> = users.into_iter().filter(|user| !self.known.contains(user)).collect();
        if unseen.is_empty() {
            return Ok(0);
        }
        let unseen: Vec<UserId> = unseen.into_iter().collect();
        let registered = {
            let mut tx = self.db.read().await?;
            read::handles(&mut tx.conn(), &unseen).await?
        };
        let missing: Vec<UserId> = unseen.into_iter().filter(|user| !registered.contains_key(user)).collect();
        self.known.extend(registered.into_keys());
        let commands = missing.iter().map(|user| register(*user)).collect::<Result<Vec<_>>>()?;
        let answers = self.ledgers.users.submit_all(commands).await;
        let mut added = 0;
        for (user, answer) in missing.into_iter().zip(answers) {
            if is_registered(answer, &mut added)? {
                self.known.insert(user);
            }
        }
        Ok(added)
    }
}

fn register(user: UserId) -> Result<Register> {
    let handle = format!("user-{user}").parse::<Handle>();
    // "user-" and the 19 digits of the last id are within the limit of a handle.
    let handle = handle.map_err(|error| Error::Usage(format!("no handle for user {user}: {error}")))?;
    Ok(Register { id: Some(user), handle, metadata: Metadata::default() })
}

type Registered = Result<Result<<Registry as Decide>::Outcome, <Registry as Decide>::Refusal>, SubmitError>;

/// Whether the user is there now; whoever was registered meanwhile by another process is.
fn is_registered(answer: Registered, added: &mut u64) -> Result<bool> {
    use tidings_community::user::facts::Refusal;
    Ok(match answer? {
        Ok(user) => {
            *added += u64::from(user.changed);
            true
        }
        Err(Refusal::UserExists) => true,
        // The follow that names the user is refused, with its line, so nothing is lost in silence.
        Err(Refusal::HandleTaken | Refusal::IdsExhausted) => false,
    })
}
