//! JSON bodies, read within the limit. What is malformed becomes a problem that names the field.

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::{
    input::shortened,
    problem::{Name, Problem},
    state::AppState,
};

/// A JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "the body must be JSON, with `content-type: application/json`";
            return Err(Problem::new(Name::UnsupportedMediaType).detail(detail));
        }
        let bytes = read_body(request.into_body(), state.config.http.body_bytes_max).await?;
        object(&bytes).map(Self)
    }
}

/// Reads a JSON object, and nothing else: the reader would take an array for the fields in their order.
fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::field("body", "must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        malformed_body(&path, error.inner())
    })?;
    reader.end().map_err(|error| malformed_body(".", &error))?;
    Ok(value)
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

pub(super) async fn read_body(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(Name::BodyTooLarge)),
        Err(_) => Err(Problem::field("body", "could not be read to its end")),
    }
}

/// Says what is wrong, and never what was sent: that may be a secret.
fn malformed_body(path: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    // A field that is missing or unknown has no path of its own; the reader quotes its name.
    let named = |start: &str| text.strip_prefix(start).and_then(|rest| rest.split('`').next());
    if let Some(name) = named("missing field `") {
        return Problem::field(name, "is missing");
    }
    if let Some(name) = named("unknown field `") {
        return Problem::field(shortened(name), "is not a field of this body");
    }
    if let Some(name) = named("duplicate field `") {
        return Problem::field(name, "is given more than once");
    }
    let field = if matches!(path, "." | "?") { "body" } else { path };
    // The reader quotes a value of the wrong type before it says what it expected.
    let detail = match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("is malformed: expected {expected}"),
        None if error.is_data() => "is malformed".to_owned(),
        None => format!("is malformed: {text}"),
    };
    Problem::field(shortened(field), detail)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        #[expect(dead_code, reason = "only read from JSON")]
        handle: String,
    }

    fn field_at_fault(json: &str) -> String {
        let problem = object::<Asked>(json.as_bytes()).unwrap_err();
        let document: Value = serde_json::from_str(&problem.written("request-1")).unwrap();
        document["errors"][0]["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_field_at_fault_is_named() {
        assert_eq!(field_at_fault("{}"), "handle");
        assert_eq!(field_at_fault(r#"{"handle": 5}"#), "handle");
        assert_eq!(field_at_fault(r#"{"handle": "a", "nix": 1}"#), "nix");
        assert_eq!(field_at_fault(r#"{"handle": "a", "handle": "a"}"#), "handle");
        assert_eq!(field_at_fault("[]"), "body");
        assert_eq!(field_at_fault(r#" ["ada"]"#), "body");
        assert_eq!(field_at_fault(r#"{"handle": "a"} {}"#), "body");
        assert_eq!(field_at_fault("nonsense"), "body");
        assert_eq!(field_at_fault(""), "body");
    }

    #[test]
    fn what_was_sent_is_not_shown() {
        for json in [r#"{"handle": 8471}"#, r#"{"handle": ["8471"]}"#, r#"{"handle": {"a, expected 8471": 1}}"#] {
            let problem = object::<Asked>(json.as_bytes()).unwrap_err();
            let text = problem.written("request-1");
            assert!(text.contains("expected a string") && !text.contains("8471"), "{text}");
        }
    }

    #[test]
    fn a_body_is_json_by_its_media_type_alone() {
        let is = |text: &'static str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(text))]))
        };
        assert!(is("application/json") && is("Application/JSON; charset=utf-8"));
        assert!(!is("text/plain") && !is("application/jsonx") && !is("") && !is_json(&HeaderMap::new()));
    }
}
