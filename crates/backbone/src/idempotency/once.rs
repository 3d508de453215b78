//! An action of an operator that carries an `Idempotency-Key` is done once: its first answer is stored in the
//! transaction that does it, and a repetition gets that one.

use serde::{Serialize, de::DeserializeOwned};
use tidings_event::Timestamp;

use super::{Answer, IdempotencyKey, KeyReused, first, store};
use crate::{Conn, Db, Result, Tx};

/// Does an action, unless the same request was answered before. Once more where somebody was faster, such as one who
/// has answered the same request since it was looked for: then that answer is found.
pub(crate) async fn attempt<O, R, F>(db: &Db, key: Option<&IdempotencyKey>, act: impl Fn() -> F) -> Result<Result<O, R>>
where
    O: DeserializeOwned,
    R: DeserializeOwned + From<KeyReused>,
    F: Future<Output = Result<Result<O, R>>>,
{
    // First of all: what an action finds out may take long, and may be otherwise by now.
    if key.is_some()
        && let Some(answered) = answered(&mut db.glance().await?.conn(), key).await?
    {
        return Ok(answered);
    }
    match act().await {
        Err(error) if error.is_lost_race() => act().await,
        done => done,
    }
}

/// The answer that a repetition gets; nothing where the action is to be done.
pub(crate) async fn answered<O, R>(conn: &mut Conn<'_>, key: Option<&IdempotencyKey>) -> Result<Option<Result<O, R>>>
where
    O: DeserializeOwned,
    R: DeserializeOwned + From<KeyReused>,
{
    Ok(first::<O, R>(conn, key).await?.map(|first| match first {
        Ok(Answer::Done(outcome)) => Ok(outcome),
        Ok(Answer::Refused(refusal)) => Err(refusal),
        Err(reused) => Err(reused.into()),
    }))
}

/// Commits what was done, with its answer under the key.
///
/// # Errors
/// [`crate::Error::is_lost_race`] when somebody has stored an answer under this key meanwhile; nothing was done then.
pub(crate) async fn done<O: Serialize>(
    mut tx: Tx,
    key: Option<&IdempotencyKey>,
    outcome: &O,
    at: Timestamp,
) -> Result<()> {
    if let Some(key) = key {
        let answer: Answer<&O, ()> = Answer::Done(outcome);
        store(&mut tx.conn(), &[(key, answer)], at).await?;
    }
    tx.commit().await
}

/// Ends a transaction that has done nothing of the action, with the refusal under the key: it is an answer like any
/// other. One that is only a race is none: its transaction is rolled back.
pub(crate) async fn refused<O, R: Serialize>(
    mut tx: Tx,
    key: Option<&IdempotencyKey>,
    refusal: R,
    at: Timestamp,
) -> Result<Result<O, R>> {
    match key {
        Some(key) => {
            let answer: Answer<(), &R> = Answer::Refused(&refusal);
            store(&mut tx.conn(), &[(key, answer)], at).await?;
            tx.commit().await?;
        }
        None => tx.rollback().await?,
    }
    Ok(Err(refusal))
}
