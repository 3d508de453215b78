//! `Idempotency-Key`: the first answer to a command is stored in the command's own transaction, so
//! a repetition is answered with it and changes nothing.

pub(crate) mod once;

use std::collections::HashMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidings_event::Timestamp;

use crate::{Conn, Error, Result, db::Value};

/// What identifies a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Who asks and what for, so that two users' keys never meet: `user/17/relation`.
    pub scope: String,
    /// The key as the client sent it.
    pub key: String,
    /// Digest of what was asked. The same key with another digest is a mistake of the client.
    pub fingerprint: [u8; 32],
}

/// An answer as stored: outcome or refusal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer<O, R> {
    Done(O),
    Refused(R),
}

/// The key belongs to another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyReused;

/// Stored answers by scope and key, with the fingerprint of what was asked.
pub(crate) type Stored = HashMap<(String, String), (Vec<u8>, String)>;

/// Looks up which of `keys` were answered before.
pub(crate) async fn find(conn: &mut Conn<'_>, keys: &[&IdempotencyKey]) -> Result<Stored> {
    let rows: Vec<[Value; 2]> = keys.iter().map(|key| [key.scope.clone().into(), key.key.clone().into()]).collect();
    let sql = |values: &str| {
        format!(
            "SELECT scope, idem_key, fingerprint, answer FROM idempotency_key \
             WHERE (scope, idem_key) IN ({values})"
        )
    };
    let found = conn.fetch_rows("looking up idempotency keys", sql, rows).await?;
    found.iter().map(|row| Ok(((row.text(0)?, row.text(1)?), (row.bytes(2)?, row.text(3)?)))).collect()
}

/// The first answer to a request that carries this key; nothing where there is none yet, or no key.
pub(crate) async fn first<O: DeserializeOwned, R: DeserializeOwned>(
    conn: &mut Conn<'_>,
    key: Option<&IdempotencyKey>,
) -> Result<Option<Result<Answer<O, R>, KeyReused>>> {
    let Some(key) = key else { return Ok(None) };
    let mut stored = find(conn, &[key]).await?;
    let Some((fingerprint, answer)) = stored.remove(&(key.scope.clone(), key.key.clone())) else { return Ok(None) };
    if fingerprint != key.fingerprint {
        return Ok(Some(Err(KeyReused)));
    }
    serde_json::from_str(&answer).map_err(Error::json("reading a stored answer")).map(|answer| Some(Ok(answer)))
}

/// Stores first answers.
pub(crate) async fn store<O: Serialize, R: Serialize>(
    conn: &mut Conn<'_>,
    answers: &[(&IdempotencyKey, Answer<O, R>)],
    at: Timestamp,
) -> Result<()> {
    let rows = answers
        .iter()
        .map(|(key, answer)| {
            let answer = serde_json::to_string(answer).map_err(Error::json("storing an answer"))?;
            Ok([
                key.scope.clone().into(),
                key.key.clone().into(),
                key.fingerprint.to_vec().into(),
                answer.into(),
                at.0.into(),
            ])
        })
        .collect::<Result<Vec<[Value; 5]>>>()?;
    let head = "INSERT INTO idempotency_key (scope, idem_key, fingerprint, answer, created_at) VALUES";
    conn.execute_rows("storing idempotency keys", head, rows, "").await.map(drop)
}
