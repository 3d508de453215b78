//! The identity of a request: answered in `x-request-id`, written in logs, problems and events.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use tidings_backbone::{Clock, EventIds};

/// The header that carries it, both ways.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest given id that is kept, in characters.
const CHARS_MAX: usize = 64;

/// The identity of the request being served.
#[derive(Clone, Debug)]
pub(super) struct RequestId(Arc<str>);

impl RequestId {
    /// The same text, shared.
    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The id that came with the request if it is a sane token, else a new one.
    pub(super) fn of(headers: &HeaderMap, ids: &EventIds, clock: &Clock) -> Self {
        let given = headers.get(&HEADER).and_then(|value| value.to_str().ok()).filter(|text| is_sane(text));
        Self(given.map_or_else(|| ids.next(clock.now()).to_string().into(), Into::into))
    }
}

fn is_sane(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use tidings_event::Timestamp;

    use super::*;

    fn id_for(given: &'static [u8]) -> String {
        let headers = HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(given).unwrap())]);
        let clock = Clock::manual(Timestamp(0));
        RequestId::of(&headers, &EventIds::from_seed(1), &clock).as_str().to_owned()
    }

    #[test]
    fn a_sane_id_is_kept_and_anything_else_replaced() {
        assert_eq!(id_for(b"trace-1_a.B"), "trace-1_a.B");
        let too_long: &[u8] = &[b'a'; 65];
        for insane in [b"".as_slice(), b"a b", b"a\"b", b"\xff", "é".as_bytes(), too_long] {
            let made = id_for(insane);
            assert!(is_sane(&made) && made.len() == 36, "{made}");
        }
    }
}
