//! Errors as clients see them: RFC 9457 problem documents.
//!
//! This is the one place where an error becomes a status. A problem carries what its reader may
//! know; its cause goes to the log. The document is written by [`render`] at the edge, which knows
//! the request's id.

mod name;

use std::{borrow::Cow, error::Error as StdError};

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidings_backbone::ledger::SubmitError;
use utoipa::ToSchema;

pub use name::Name;

/// Seconds after which a client may try again when the server could not serve it.
const RETRY_SECONDS: u64 = 1;
/// Characters of what is said about one field.
const DETAIL_CHARS_MAX: usize = 200;
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// In the extensions of a response: it says itself what failed, and [`render`] leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SaysItself;

/// Why a request was not served.
#[derive(Clone, Debug)]
pub struct Problem {
    name: Name,
    detail: Option<Cow<'static, str>>,
    errors: Vec<FieldError>,
    retry_after_seconds: Option<u64>,
    /// What the log is told and the client is not.
    cause: Option<String>,
}

/// What is wrong with one part of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct FieldError {
    /// The parameter, header or field of the body.
    #[schema(example = "limit")]
    pub field: String,
    /// What is wrong with it.
    #[schema(example = "must be a whole number from 1 to 100")]
    pub detail: String,
}

/// An error, as RFC 9457 describes it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "/problems/bad-request", "title": "The request is malformed", "status": 400,
    "detail": "`limit` must be a whole number from 1 to 100", "request_id": "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c",
    "errors": [{"field": "limit", "detail": "must be a whole number from 1 to 100"}]
}))]
pub(super) struct Document<'a> {
    /// Names the kind of problem; its page says what to do.
    #[serde(rename = "type")]
    kind: String,
    /// What it is; the same for each occurrence.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What it is in this case.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// Identity of the request, as in the `x-request-id` header.
    request_id: &'a str,
    /// The parts of the request that are wrong.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl Problem {
    /// A problem of this kind, without more to say.
    pub fn new(name: Name) -> Self {
        Self { name, detail: None, errors: Vec::new(), retry_after_seconds: None, cause: None }
    }

    /// The part `field` of the request is wrong; `detail` says how, as in "must be a number".
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Name::BadRequest).at(field, detail)
    }

    /// The server's own fault: the client learns no more, the log learns the cause.
    pub fn internal(error: &(dyn StdError + 'static)) -> Self {
        Self { cause: Some(tidings_backbone::Error::chain(error)), ..Self::new(Name::Internal) }
    }

    /// Something the server depends on is down.
    pub fn unavailable(error: &(dyn StdError + 'static)) -> Self {
        let cause = Some(tidings_backbone::Error::chain(error));
        Self { cause, ..Self::new(Name::Unavailable).retry_after(RETRY_SECONDS) }
    }

    /// The server has too much to do.
    pub fn busy() -> Self {
        Self::new(Name::Busy).retry_after(RETRY_SECONDS)
    }

    /// The request took too long.
    pub fn timeout() -> Self {
        Self::new(Name::Timeout).retry_after(RETRY_SECONDS)
    }

    /// Says which part of the request it is about, and what is wrong there.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut error = FieldError { field: field.into(), detail: detail.into() };
        // It may quote what came with the request.
        if let Some((end, _)) = error.detail.char_indices().nth(DETAIL_CHARS_MAX) {
            error.detail.truncate(end);
        }
        self.detail = Some(format!("`{}` {}", error.field, error.detail).into());
        self.errors.push(error);
        self
    }

    /// Says what it is in this case.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Says when to try again, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Its kind.
    pub fn name(&self) -> Name {
        self.name
    }

    /// What the log should know and the client must not.
    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The document for a request.
    fn document<'a>(&'a self, request_id: &'a str) -> Document<'a> {
        Document {
            kind: format!("/problems/{}", self.name.slug()),
            title: self.name.title(),
            status: self.name.status().as_u16(),
            detail: self.detail.as_deref(),
            request_id,
            errors: &self.errors,
        }
    }

    /// The document as JSON.
    pub(super) fn written(&self, request_id: &str) -> String {
        // It holds texts and numbers only, which JSON can always hold.
        serde_json::to_string(&self.document(request_id)).unwrap_or_default()
    }

    /// RFC 6750: which credentials are wanted, and whether those given were wrong.
    fn challenge(&self) -> Option<HeaderValue> {
        (self.name == Name::Unauthenticated).then(|| match self.detail {
            None => HeaderValue::from_static("Bearer realm=\"tidings\""),
            Some(_) => HeaderValue::from_static("Bearer realm=\"tidings\", error=\"invalid_token\""),
        })
    }
}

impl From<tidings_backbone::Error> for Problem {
    fn from(error: tidings_backbone::Error) -> Self {
        if error.is_transient() { Self::unavailable(&error) } else { Self::internal(&error) }
    }
}

impl From<tidings_community::Error> for Problem {
    fn from(error: tidings_community::Error) -> Self {
        match error {
            tidings_community::Error::Backbone(error) => error.into(),
            error => Self::internal(&error),
        }
    }
}

impl From<crate::Error> for Problem {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::Backbone(error) => error.into(),
            crate::Error::Community(error) => error.into(),
            error => Self::internal(&error),
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match &error {
            SubmitError::Busy => Self::busy(),
            SubmitError::Closed | SubmitError::Unknown => Self::unavailable(&error),
            SubmitError::KeyReused => Self::new(Name::IdempotencyKeyReused),
            SubmitError::Failed(cause) if cause.is_transient() => Self::unavailable(&error),
            SubmitError::Failed(_) => Self::internal(&error),
        }
    }
}

impl IntoResponse for Problem {
    /// Status and headers; the document is added by [`render`].
    fn into_response(self) -> Response {
        let mut response = self.name.status().into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(challenge) = self.challenge() {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the document of a failed response. A failure that is no problem yet, such as a route's
/// 405, becomes one, so that every error has this shape. Answers the problem for the log.
pub(super) fn render(response: Response, request_id: &str) -> (Response, Option<Problem>) {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if !failed || response.extensions().get::<SaysItself>().is_some() {
        return (response, None);
    }
    let (mut parts, _) = response.into_parts();
    let problem = parts.extensions.remove::<Problem>().unwrap_or_else(|| Problem::new(Name::from_status(status)));
    parts.status = problem.name.status();
    for superseded in [header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
        parts.headers.remove(superseded);
    }
    parts.headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
    let body = problem.written(request_id);
    (Response::from_parts(parts, body.into()), Some(problem))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::StatusCode};

    use super::*;

    async fn shown(problem: Problem) -> String {
        let (response, _) = render(problem.into_response(), "r-1");
        let headers: Vec<_> = [header::RETRY_AFTER, header::WWW_AUTHENTICATE]
            .iter()
            .filter_map(|name| Some(format!("{name}: {}\n", response.headers().get(name)?.to_str().unwrap())))
            .collect();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        format!("{}{}", headers.concat(), String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_problem_names_its_field() {
        insta::assert_snapshot!(shown(Problem::field("limit", "must be a number")).await);
    }

    #[tokio::test]
    async fn the_cause_of_an_internal_error_is_not_shown() {
        let error = std::io::Error::other("the password is hunter2");
        insta::assert_snapshot!(shown(Problem::internal(&error)).await);
    }

    #[tokio::test]
    async fn a_problem_says_when_to_try_again_and_what_credentials_to_bring() {
        insta::assert_snapshot!(shown(Problem::busy()).await, @r#"
        retry-after: 1
        {"type":"/problems/busy","title":"The server has too much to do","status":503,"request_id":"r-1"}
        "#);
        insta::assert_snapshot!(shown(Problem::new(Name::Unauthenticated)).await, @r#"
        www-authenticate: Bearer realm="tidings"
        {"type":"/problems/unauthenticated","title":"Valid credentials are needed","status":401,"request_id":"r-1"}
        "#);
    }

    #[tokio::test]
    async fn a_failure_without_a_document_gets_one_and_keeps_its_headers() {
        let bare = (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], "plain").into_response();
        let (response, problem) = render(bare, "r-1");
        assert_eq!(problem.unwrap().name(), Name::MethodNotAllowed);
        assert_eq!(response.headers()[header::ALLOW], "GET");
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
    }

    #[tokio::test]
    async fn a_failure_that_says_itself_what_it_is_is_left_alone() {
        let bare = (StatusCode::SERVICE_UNAVAILABLE, axum::Extension(SaysItself), "unready").into_response();
        let (response, problem) = render(bare, "r-1");
        assert!(problem.is_none());
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(to_bytes(response.into_body(), usize::MAX).await.unwrap(), "unready");
    }

    #[test]
    fn what_is_said_about_a_field_stays_short() {
        let problem = Problem::field("handle", "\u{e9}".repeat(5_000));
        assert_eq!(problem.errors[0].detail.chars().count(), 200);
        assert!(problem.detail.unwrap().chars().count() < 220);
    }

    #[test]
    fn a_failure_without_a_document_keeps_its_kind_and_its_status() {
        for (status, name) in [
            (StatusCode::SERVICE_UNAVAILABLE, Name::Unavailable),
            (StatusCode::REQUEST_TIMEOUT, Name::Timeout),
            (StatusCode::GATEWAY_TIMEOUT, Name::Timeout),
            (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Name::HeadersTooLarge),
            (StatusCode::BAD_GATEWAY, Name::Internal),
            (StatusCode::GONE, Name::BadRequest),
        ] {
            let (_, problem) = render(status.into_response(), "r-1");
            assert_eq!(problem.unwrap().name(), name, "{status}");
        }
    }

    #[test]
    fn every_kind_is_found_by_its_name_and_its_page_begins_with_its_title() {
        for name in Name::ALL {
            assert_eq!(Name::from_slug(name.slug()), Some(*name));
            assert!(name.page().starts_with(&format!("# {}\n", name.title())), "{}", name.slug());
            assert!(name.page().contains(&format!("| Status | {} |", name.status().as_u16())), "{}", name.slug());
        }
    }
}
