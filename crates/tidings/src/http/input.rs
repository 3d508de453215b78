//! What a request brings, parsed: path, query, headers. Whatever is malformed becomes a problem that
//! names it. Bodies are read in `body`.

use std::{
    borrow::Cow,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::{ConnectInfo, FromRequestParts, Query as AxumQuery, RawPathParams},
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use serde::Serialize;
use tidings_backbone::{idempotency::IdempotencyKey, trace::Context};
use tidings_community::UserId;
use tidings_event::Metadata;

use super::{problem::Problem, request_id::RequestId};
use crate::auth::{Identity, sha256, url_text};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// What the header is, for the description of the API.
pub(super) const IDEMPOTENCY_KEY_TEXT: &str = "1 to 255 visible ASCII characters. A request that repeats the key \
     within 24 hours is answered as the first one was, and changes nothing";
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Bytes of whose a key is that the database keeps; of what is longer, a digest.
const SCOPE_BYTES_MAX: usize = 255;
/// Characters of a user agent that an event keeps.
const USER_AGENT_CHARS_MAX: usize = 256;
const ID_RULE: &str = "must be a whole number from 0 to 9223372036854775807, in digits without leading zeros";

/// The only parameter of the path, as text, and its name.
pub(super) struct PathText {
    pub(super) name: String,
    pub(super) text: String,
}

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let malformed = |_| Problem::field("path", "must be UTF-8");
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(malformed)?;
        let (name, text) = params.iter().next().ok_or_else(|| Problem::field("path", "is incomplete"))?;
        Ok(Self { name: name.to_owned(), text: text.to_owned() })
    }
}

/// The user that the path names.
pub(super) struct PathUser(pub(super) UserId);

impl<S: Send + Sync> FromRequestParts<S> for PathUser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathText { name, text } = PathText::from_request_parts(parts, state).await?;
        user_id(&name, &text).map(Self)
    }
}

/// Reads a user's id from the parameter or field `field`.
pub(super) fn user_id(field: &str, text: &str) -> Result<UserId, Problem> {
    text.parse().map_err(|_| Problem::field(field, ID_RULE))
}

/// The parameters of the query. Each is taken once by its name; one that nobody took is an error,
/// so that a misspelt parameter is noticed.
pub(super) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = AxumQuery::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let AxumQuery(pairs) = pairs.map_err(|_| Problem::field("query", "is malformed"))?;
        Ok(Self(pairs))
    }
}

impl Query {
    /// Takes the parameter `name`.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let Some(at) = self.0.iter().position(|(other, _)| other == name) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(at);
        if self.0.iter().any(|(other, _)| other == name) {
            return Err(Problem::field(name, "is given more than once"));
        }
        Ok(Some(value))
    }

    /// Takes the parameter `name` that must be there.
    pub(super) fn require(&mut self, name: &str) -> Result<String, Problem> {
        self.take(name)?.ok_or_else(|| Problem::field(name, "is missing"))
    }

    /// Takes the whole number `name`, which must be within `range`.
    pub(super) fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, Problem> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        // Digits alone: the standard parser would take a sign.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        let rule = || format!("must be a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| Problem::field(name, rule()))
    }

    /// Takes `name`, which is `true` or `false`, and `false` unless given.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::field(name, "must be `true` or `false`")),
        }
    }

    /// Says that nothing else was expected.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::field(shortened(name), "is not a parameter of this route")),
        }
    }
}

/// The query of a route without parameters, which is empty. Reading it first keeps a misspelt request
/// from changing anything.
pub(super) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state).await?.end().map(|()| Self)
    }
}

/// A name that came with the request, cut so that the answer stays small.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

/// The `Idempotency-Key` header, if there is one, for a request of this content by `scope`.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    scope: String,
    content: &[&[u8]],
) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::field(IDEMPOTENCY_KEY, "is given more than once"));
    }
    let visible = value.as_bytes().iter().all(u8::is_ascii_graphic);
    if !visible || !(1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&value.len()) {
        return Err(Problem::field(IDEMPOTENCY_KEY, "must have 1 to 255 visible ASCII characters"));
    }
    let key = String::from_utf8_lossy(value.as_bytes()).into_owned();
    // A subject may be as long as a token lets it be.
    let scope = if scope.len() > SCOPE_BYTES_MAX { url_text(&sha256(scope.as_bytes())) } else { scope };
    Ok(Some(IdempotencyKey { scope, key, fingerprint: fingerprint(content) }))
}

/// The same for an operator's action: the key is the caller's own, and of this action.
pub(super) fn action_key(
    headers: &HeaderMap,
    identity: &Identity,
    action: &str,
    asked: &impl Serialize,
) -> Result<Option<IdempotencyKey>, Problem> {
    let content = serde_json::to_vec(asked).map_err(|error| Problem::internal(&error))?;
    idempotency_key(headers, format!("admin/{}/{action}", identity.subject), &[&content])
}

/// A digest in which each part has a place of its own.
fn fingerprint(content: &[&[u8]]) -> [u8; 32] {
    let mut bytes = Vec::new();
    for part in content {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    sha256(&bytes)
}

/// In the extensions of a request that is traced: its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced(pub(super) Context);

/// In the extensions of a request whose sender says that it is traced: whether he was admitted. Else anybody could fill
/// the queue of spans, and others would lose theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Admitted(Arc<AtomicBool>);

impl Admitted {
    /// Notes that his credentials admit him to the route.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where a request came from, as its events keep it.
pub(super) struct Origin(pub(super) Metadata);

impl<S: Send + Sync> FromRequestParts<S> for Origin {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        // What follows from the request is a part of its span, or else of whatever its sender does.
        let traced = parts.extensions.get::<Traced>().map(|Traced(context)| *context);
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(Metadata {
            traceparent: traced.or_else(|| text(TRACEPARENT)?.parse().ok()).map(|context| context.to_string()),
            request_id: parts.extensions.get::<RequestId>().map(|id| id.as_str().to_owned()),
            user_agent: text(header::USER_AGENT).map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
            source_ip: peer.map(|ConnectInfo(address)| address.ip().to_string()),
            ..Metadata::default()
        }))
    }
}

/// The cookie `name` of a request.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key.trim() == name).then(|| Cow::Borrowed(value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        let pairs = AxumQuery::try_from_uri(&format!("/?{text}").parse().unwrap()).unwrap();
        let AxumQuery(pairs) = pairs;
        Query(pairs)
    }

    #[test]
    fn numbers_are_digits_within_their_range() {
        assert_eq!(query("limit=20").number("limit", 1..=100).unwrap(), Some(20));
        assert_eq!(query("").number("limit", 1..=100).unwrap(), None);
        for wrong in ["0", "101", "+5", "-1", "1.0", "", "%205", "5%20", "0x5", "4294967296", "%D9%A5", "%FF"] {
            assert!(query(&format!("limit={wrong}")).number("limit", 1..=100).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_parameter_that_is_doubled_or_unknown_is_an_error() {
        assert!(query("limit=1&limit=1").take("limit").is_err());
        assert!(query("limt=1").end().is_err());
        assert!(query("").end().is_ok());
    }

    #[test]
    fn an_idempotency_key_is_visible_ascii() {
        let of = |scope: &str, value: &[u8]| {
            let value = axum::http::HeaderValue::from_bytes(value).unwrap();
            let headers = HeaderMap::from_iter([(HeaderName::from_static(IDEMPOTENCY_KEY), value)]);
            idempotency_key(&headers, scope.to_owned(), &[])
        };
        let key = |value: &[u8]| of("scope", value);
        let scope = |length: usize| of(&"s".repeat(length), b"k").unwrap().unwrap().scope;
        assert_eq!((scope(255).len(), scope(256).len()), (255, 43), "the database has room for it");
        assert_ne!(scope(256), scope(257));
        assert_eq!(key(b"a-1").unwrap().unwrap().key, "a-1");
        for wrong in [b"".as_slice(), b"a b", "é".as_bytes(), &[b'a'; 256]] {
            assert!(key(wrong).is_err());
        }
        assert!(idempotency_key(&HeaderMap::new(), "scope".to_owned(), &[]).unwrap().is_none());
    }

    #[test]
    fn fingerprints_tell_the_parts_apart() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let headers = HeaderMap::from_iter([(header::COOKIE, "a=1; tidings_session=x ;b=2".parse().unwrap())]);
        assert_eq!(cookie(&headers, "tidings_session").as_deref(), Some("x"));
        assert_eq!(cookie(&headers, "session"), None);
    }
}
