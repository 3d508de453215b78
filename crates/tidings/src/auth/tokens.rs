//! Bearer tokens: minted with the own key, verified with the own or the external issuer's keys.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{Algorithm, DecodingKey, Header, TokenData, Validation, dangerous};
use moka::future::Cache;
use serde::{Deserialize, Serialize};
use tidings_backbone::Clock;
use tidings_event::payload::Id;

use super::{ExternalKeys, KeyFile, Login, SigningKey, keys};
use crate::{Error, Result, config};

/// The role that admits to the admin surface.
const ADMIN_ROLE: &str = "admin";
/// Longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 8_192;
/// Difference between clocks that is forgiven, in seconds. Own tokens meet the clock that made them.
const EXTERNAL_LEEWAY_SECONDS: i64 = 60;
/// Verified tokens that are remembered, since verifying costs far more than a look-up.
const VERIFIED_TOKENS_MAX: u64 = 20_000;
/// How long a verified token is remembered; a key that the external issuer withdraws admits no longer.
const VERIFIED_TIME_MAX: Duration = Duration::from_secs(60);

/// The claims of an own token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued the token.
    pub iss: String,
    /// Who it is for.
    pub aud: String,
    /// Who it speaks for: the digits of a user's id, or a name.
    pub sub: String,
    /// What the subject may do beyond its own affairs: `admin`.
    pub roles: Vec<String>,
    /// When it was made, in seconds since the Unix epoch.
    pub iat: i64,
    /// When it ends, in seconds since the Unix epoch.
    pub exp: i64,
    /// Identity of the token.
    pub jti: String,
}

/// What a token is made for.
#[derive(Clone, Debug)]
pub enum Role {
    /// To speak for a user.
    User(Id),
    /// To administrate.
    Admin,
}

/// What a token is made from.
#[derive(Clone, Debug)]
pub struct Minting {
    /// What it is for.
    pub role: Role,
    /// How long it is valid, in minutes.
    pub minutes: u32,
}

/// Makes a token.
///
/// # Errors
/// When the key cannot sign.
pub fn mint(key: &SigningKey, auth: &config::Auth, clock: &Clock, minting: &Minting) -> Result<String> {
    let iat = clock.now().0 / 1_000;
    let (sub, roles) = match minting.role {
        Role::User(id) => (id.to_string(), Vec::new()),
        Role::Admin => (ADMIN_ROLE.to_owned(), vec![ADMIN_ROLE.to_owned()]),
    };
    let claims = Claims {
        iss: auth.issuer.clone(),
        aud: auth.audience.clone(),
        sub,
        roles,
        iat,
        exp: iat.saturating_add(i64::from(minting.minutes) * 60),
        jti: super::secrets::random_text(),
    };
    let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::RS256) };
    jsonwebtoken::encode(&header, &claims, &key.encoding).map_err(Error::key("signing a token"))
}

/// Whom a valid token or login speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The subject: the digits of a user's id, or a name.
    pub subject: Arc<str>,
    /// The user, when the subject is one.
    pub user: Option<Id>,
    /// Whether the subject is admin.
    pub admin: bool,
}

impl Identity {
    /// The admin that a console login speaks for.
    pub fn console(login: Login) -> Self {
        Self { subject: login.subject.into(), user: None, admin: true }
    }
}

/// Why a token does not admit.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// The token is not valid; the text says why, for its owner.
    #[error("{0}")]
    Invalid(&'static str),
    /// It cannot be told now: the keys are out of reach.
    #[error("the keys to verify the token are out of reach")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Verifies tokens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Verifier {
    own: KeyFile,
    external: Option<Arc<ExternalKeys>>,
    auth: Arc<config::Auth>,
    clock: Clock,
    /// By digest, so that no token rests in memory longer than its request.
    verified: Cache<[u8; 32], Verified>,
}

#[derive(Clone, Debug)]
struct Verified {
    identity: Identity,
    /// First second at which the token no longer admits.
    ends: i64,
}

/// The claims looked at. A claim of a wrong type makes the token malformed.
#[derive(Debug, Deserialize)]
struct Presented {
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(default)]
    roles: Vec<String>,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
}

impl Verifier {
    /// Verifies with the own key, and the external issuer's keys if there is one.
    pub fn new(own: KeyFile, external: Option<ExternalKeys>, auth: config::Auth, clock: Clock) -> Self {
        let verified = Cache::builder().max_capacity(VERIFIED_TOKENS_MAX).time_to_live(VERIFIED_TIME_MAX).build();
        Self { own, external: external.map(Arc::new), auth: Arc::new(auth), clock, verified }
    }

    /// The own key, to show its public half.
    ///
    /// # Errors
    /// When the key cannot be read or made.
    pub async fn own_key(&self) -> Result<Arc<SigningKey>> {
        self.own.get().await
    }

    /// Answers whom `token` speaks for.
    ///
    /// # Errors
    /// When the token does not admit, or its issuer's keys are out of reach.
    pub async fn verify(&self, token: &str) -> Result<Identity, Rejection> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Rejection::Invalid("the token is too long"));
        }
        let digest = keys::sha256(token.as_bytes());
        let now = self.clock.now().0 / 1_000;
        if let Some(verified) = self.verified.get(&digest).await {
            return if now < verified.ends { Ok(verified.identity) } else { Err(EXPIRED) };
        }
        let verified = self.check(token, now).await?;
        self.verified.insert(digest, verified.clone()).await;
        Ok(verified.identity)
    }

    async fn check(&self, token: &str, now: i64) -> Result<Verified, Rejection> {
        // The issuer is read unverified, only to choose whose keys must have signed it.
        let unverified: TokenData<Presented> =
            dangerous::insecure_decode(token).map_err(|_| Rejection::Invalid("the token is malformed"))?;
        let header = unverified.header;
        if header.alg != Algorithm::RS256 {
            return Err(Rejection::Invalid("the token is not signed with RS256"));
        }
        if header.crit.is_some() {
            return Err(Rejection::Invalid("the token demands an extension that is not understood"));
        }
        let kid = header.kid.as_deref();
        let issuer = unverified.claims.iss.as_str();
        match &self.external {
            _ if issuer == self.auth.issuer => {
                let key = self.own.get().await.map_err(|error| Rejection::Unavailable(Box::new(error)))?;
                if kid.is_some_and(|kid| kid != key.kid) {
                    return Err(UNKNOWN_KEY);
                }
                self.decode(token, &key.decoding, issuer, 0, now)
            }
            Some(external) if issuer == self.auth.jwks_issuer => {
                let key = external.key(kid).await?.ok_or(UNKNOWN_KEY)?;
                self.decode(token, &key, issuer, EXTERNAL_LEEWAY_SECONDS, now)
            }
            _ => Err(Rejection::Invalid("the token is of an unknown issuer")),
        }
    }

    fn decode(
        &self,
        token: &str,
        key: &DecodingKey,
        issuer: &str,
        leeway: i64,
        now: i64,
    ) -> Result<Verified, Rejection> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[&self.auth.audience]);
        // Time is compared below, with the clock that was passed in.
        validation.validate_exp = false;
        let decoded = jsonwebtoken::decode::<Presented>(token, key, &validation).map_err(rejection)?;
        let claims = decoded.claims;
        let ends = whole_seconds(claims.exp).saturating_add(leeway);
        if now >= ends {
            return Err(EXPIRED);
        }
        if claims.nbf.is_some_and(|begins| whole_seconds(begins) > now + leeway) {
            return Err(Rejection::Invalid("the token is not valid yet"));
        }
        let identity = Identity {
            user: claims.sub.parse().ok(),
            subject: claims.sub.into(),
            admin: claims.roles.iter().any(|role| role == ADMIN_ROLE),
        };
        Ok(Verified { identity, ends })
    }
}

const EXPIRED: Rejection = Rejection::Invalid("the token has expired");
const UNKNOWN_KEY: Rejection = Rejection::Invalid("the token is signed with an unknown key");

fn rejection(error: jsonwebtoken::errors::Error) -> Rejection {
    use jsonwebtoken::errors::ErrorKind;
    Rejection::Invalid(match error.kind() {
        ErrorKind::InvalidSignature => "the token's signature does not match",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::InvalidIssuer => "the token is of an unknown issuer",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks a claim: exp, iss and aud are required",
        _ => "the token is malformed",
    })
}

/// RFC 7519 allows fractions of a second.
fn whole_seconds(seconds: f64) -> i64 {
    // The cast saturates, and NaN becomes 0, which has long expired.
    seconds.floor() as i64
}

#[cfg(test)]
mod tests;
