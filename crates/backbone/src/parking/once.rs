//! An action that carries an `Idempotency-Key` is done once: its first answer is stored in the transaction that does
//! it, and a repetition gets that one.

use serde::{Serialize, de::DeserializeOwned};
use tidings_event::Timestamp;

use super::Refusal;
use crate::{
    Conn, Result, Tx,
    idempotency::{self, Answer, IdempotencyKey, KeyReused},
};

/// Does an action, and once more where somebody has answered the same request since it was looked for: then that
/// answer is found.
pub(super) async fn attempt<O, F: Future<Output = Result<O>>>(
    key: Option<&IdempotencyKey>,
    act: impl Fn() -> F,
) -> Result<O> {
    match act().await {
        Err(error) if key.is_some() && error.is_lost_race() => act().await,
        done => done,
    }
}

/// The answer that a repetition gets; nothing where the action is to be done.
pub(super) async fn answered<O: DeserializeOwned>(
    conn: &mut Conn<'_>,
    key: Option<&IdempotencyKey>,
) -> Result<Option<Result<O, Refusal>>> {
    let first = idempotency::first::<O, Refusal>(conn, key).await?;
    Ok(first.map(|first| match first {
        Ok(Answer::Done(outcome)) => Ok(outcome),
        Ok(Answer::Refused(refusal)) => Err(refusal),
        Err(KeyReused) => Err(Refusal::KeyReused),
    }))
}

/// Commits what was done, with its answer under the key.
///
/// # Errors
/// [`crate::Error::is_lost_race`] when somebody has stored an answer under this key meanwhile; nothing was done then.
pub(super) async fn done<O: Serialize>(
    mut tx: Tx,
    key: Option<&IdempotencyKey>,
    outcome: &O,
    at: Timestamp,
) -> Result<()> {
    if let Some(key) = key {
        let answer: Answer<&O, ()> = Answer::Done(outcome);
        idempotency::store(&mut tx.conn(), &[(key, answer)], at).await?;
    }
    tx.commit().await
}

/// Ends a transaction that has changed nothing, with the refusal under the key: it is an answer like any other.
pub(super) async fn refused<O>(
    mut tx: Tx,
    key: Option<&IdempotencyKey>,
    refusal: Refusal,
    at: Timestamp,
) -> Result<Result<O, Refusal>> {
    match key {
        Some(key) => {
            let answer: Answer<(), &Refusal> = Answer::Refused(&refusal);
            idempotency::store(&mut tx.conn(), &[(key, answer)], at).await?;
            tx.commit().await?;
        }
        None => tx.rollback().await?,
    }
    Ok(Err(refusal))
}
