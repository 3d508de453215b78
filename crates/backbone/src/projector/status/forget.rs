//! What is stored of a projector that no program has any more is removed: its position holds retention back.

use std::collections::BTreeSet;

use super::{Handle, PoisonError, plain, positions};
use crate::{
    Conn, Result,
    audit::{self, Actor, Entry, Reason},
    db::Durability,
    parking,
    projector::position,
};

/// What was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Positions, one in each part of the log for each generation.
    pub positions: usize,
}

/// Why nothing was removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotForgotten {
    /// This program runs it.
    #[error("this program has the projector `{0}`")]
    Registered(String),
    /// It has no position.
    #[error("there is no position of a projector `{0}`")]
    Unknown(String),
    /// The parking lot has the only copies of what waits there.
    #[error("keys of `{projector}` are parked ({keys}); discard what waits there first")]
    Parked {
        /// Its name, with the number of its generation.
        projector: String,
        /// How many.
        keys: i64,
    },
}

impl Handle {
    /// Removes the positions of a projector that is not registered here, of every generation, and what is noted of
    /// its rebuilds. A program that does have it fails then, and begins anew with the first event.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget(
        &self,
        name: &str,
        actor: &Actor,
        reason: Option<&Reason>,
    ) -> Result<Result<Forgotten, NotForgotten>> {
        let mut tx = self.db.write(Durability::Full).await?;
        let own = match self.forgettable(&mut tx.conn(), name).await? {
            Ok(own) => own,
            Err(refusal) => return tx.rollback().await.map(|()| Err(refusal)),
        };
        let count = own.len();
        for identity in own.into_iter().collect::<BTreeSet<String>>() {
            position::remove(&mut tx.conn(), &identity).await?;
        }
        for table in ["projector_generation", "rebuild"] {
            let sql = format!("DELETE FROM {table} WHERE projector = ?");
            tx.conn().execute("forgetting a projector", sql, vec![name.into()]).await?;
        }
        let details = serde_json::json!({ "positions": count }).to_string();
        let (action, projector) = ("projector.forget", Some(name));
        let entry = Entry { actor, action, projector, key: None, event_id: None, reason, details };
        audit::write(&mut tx.conn(), &entry, self.clock.now()).await?;
        tx.commit().await?;
        Ok(Ok(Forgotten { positions: count }))
    }

    /// What [`Handle::forget`] would remove.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn would_forget(&self, name: &str) -> Result<Result<Forgotten, NotForgotten>> {
        let mut tx = self.db.read().await?;
        let own = self.forgettable(&mut tx.conn(), name).await?;
        Ok(own.map(|own| Forgotten { positions: own.len() }))
    }

    /// Whose positions are to go, the name of its generation for each.
    async fn forgettable(&self, conn: &mut Conn<'_>, name: &str) -> Result<Result<Vec<String>, NotForgotten>> {
        if self.registered.lock().unwrap_or_else(PoisonError::into_inner).contains_key(plain(name)) {
            return Ok(Err(NotForgotten::Registered(plain(name).to_owned())));
        }
        let stored = positions(conn.reborrow()).await?.into_iter().map(|stored| stored.projector);
        let own: Vec<String> = stored.filter(|identity| plain(identity) == name).collect();
        if own.is_empty() {
            return Ok(Err(NotForgotten::Unknown(name.to_owned())));
        }
        for identity in own.iter().collect::<BTreeSet<_>>() {
            let parked = parking::count(conn.reborrow(), identity).await?;
            let keys = parked.tried() + parked.dead;
            if keys > 0 {
                return Ok(Err(NotForgotten::Parked { projector: identity.clone(), keys }));
            }
        }
        Ok(Ok(own))
    }
}
