//! The keys of an external issuer, fetched from its key set (JWKS, RFC 7517).

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jsonwebtoken::{
    DecodingKey,
    jwk::{AlgorithmParameters, Jwk, KeyAlgorithm, PublicKeyUse},
};
use serde::Deserialize;
use tidings_backbone::Clock;
use tidings_event::Timestamp;
use tokio::sync::Mutex;

use super::tokens::Rejection;
use crate::{Error, Result};

/// Least time between two fetches, in milliseconds: unknown key ids must not become a flood.
const FETCH_GAP_MILLIS: i64 = 60_000;
/// Age at which known keys are fetched anew, in milliseconds, so that withdrawn ones disappear.
const AGE_MILLIS_MAX: i64 = 600_000;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
const KEY_SET_BYTES_MAX: usize = 256 * 1024;
const KEYS_MAX: usize = 100;

/// The external issuer's keys, fetched at need and kept.
#[derive(Debug)]
pub struct ExternalKeys {
    url: reqwest::Url,
    client: reqwest::Client,
    clock: Clock,
    known: RwLock<Known>,
    /// Held while fetching, so that one request fetches and those that need the answer wait for it.
    fetching: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    keys: Arc<HashMap<String, Arc<DecodingKey>>>,
    /// When the keys were fetched.
    fetched_at: Option<Timestamp>,
    /// When a fetch was last begun, and whether it failed.
    tried_at: Option<Timestamp>,
    failed: bool,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

impl ExternalKeys {
    /// Keys to be fetched from `url`.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(url: reqwest::Url, clock: Clock) -> Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(FETCH_TIME_MAX)
            // A redirect could lead to where the configuration would not have been accepted.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(Error::key("preparing to fetch the external keys"))?;
        Ok(Self { url, client, clock, known: RwLock::default(), fetching: Mutex::new(()) })
    }

    /// The key named `kid`. A token without a name is accepted when the issuer has one key only.
    ///
    /// # Errors
    /// When the key set is out of reach and the key is not known from before.
    pub(super) async fn key(&self, kid: Option<&str>) -> Result<Option<Arc<DecodingKey>>, Rejection> {
        let known = self.known();
        if let Some(key) = known.find(kid) {
            if !known.is_old(self.clock.now()) {
                return Ok(Some(key));
            }
            // Old keys serve on while somebody else looks for new ones.
            let Ok(_turn) = self.fetching.try_lock() else { return Ok(Some(key)) };
            self.fetch_if_due().await;
        } else {
            let _turn = self.fetching.lock().await;
            self.fetch_if_due().await;
        }
        let known = self.known();
        match known.find(kid) {
            None if known.failed => Err(Rejection::Unavailable("the last fetch of the key set failed".into())),
            found => Ok(found),
        }
    }

    async fn fetch_if_due(&self) {
        let now = self.clock.now();
        if self.known().tried_at.is_some_and(|tried| now.0 - tried.0 < FETCH_GAP_MILLIS) {
            return;
        }
        let fetched = self.fetch().await;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.tried_at = Some(now);
        known.failed = fetched.is_err();
        match fetched {
            Ok(keys) => {
                tracing::info!(keys = keys.len(), "fetched the external issuer's keys");
                known.keys = Arc::new(keys);
                known.fetched_at = Some(now);
            }
            Err(error) => {
                let cause = tidings_backbone::Error::chain(&*error);
                tracing::warn!(cause, "the external issuer's keys could not be fetched");
            }
        }
    }

    async fn fetch(&self) -> Result<HashMap<String, Arc<DecodingKey>>, Box<dyn std::error::Error + Send + Sync>> {
        // Errors must not carry the URL, which may hold credentials.
        let request = self.client.get(self.url.clone()).send().await;
        let mut response =
            request.and_then(reqwest::Response::error_for_status).map_err(reqwest::Error::without_url)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + chunk.len() > KEY_SET_BYTES_MAX {
                return Err(format!("the key set has more than {KEY_SET_BYTES_MAX} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        let set: KeySet = serde_json::from_slice(&body)?;
        Ok(set.keys.into_iter().take(KEYS_MAX).filter_map(usable).collect())
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Known {
    fn find(&self, kid: Option<&str>) -> Option<Arc<DecodingKey>> {
        match kid {
            Some(kid) => self.keys.get(kid).cloned(),
            None if self.keys.len() == 1 => self.keys.values().next().cloned(),
            None => None,
        }
    }

    fn is_old(&self, now: Timestamp) -> bool {
        self.fetched_at.is_none_or(|fetched| now.0 - fetched.0 >= AGE_MILLIS_MAX)
    }
}

/// A key set may hold keys of other kinds and for other uses: those are passed over.
fn usable(key: serde_json::Value) -> Option<(String, Arc<DecodingKey>)> {
    let jwk: Jwk = serde_json::from_value(key).ok()?;
    let is_rsa = matches!(jwk.algorithm, AlgorithmParameters::RSA(_));
    let for_signatures = jwk.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let for_rs256 = jwk.common.key_algorithm.is_none_or(|algorithm| algorithm == KeyAlgorithm::RS256);
    if !(is_rsa && for_signatures && for_rs256) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some((jwk.common.key_id.unwrap_or_default(), Arc::new(key)))
}
