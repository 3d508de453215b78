//! The console: its files, and logging in to it.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::{EmbeddedFile, RustEmbed};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    access::{self, SESSION_COOKIE, blocking, same_origin},
    body,
    input::{NoQuery, PathText, cookie},
    moment::Moment,
    problem::{Name, Problem},
    state::{App, AppState},
};
use crate::auth::Login;

/// Where logins are made, asked for and ended.
pub(super) const SESSION_PATH: &str = "/console/session";
const SHELL: &str = "index.html";
/// The console loads and asks nobody but this server, and runs no script that stands in a page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

#[derive(RustEmbed)]
#[folder = "console/"]
struct Files;

/// The page that everything in the console begins with; `/login` too.
pub(super) async fn shell(headers: HeaderMap) -> Response {
    file(SHELL, &headers)
}

/// A file of the console.
pub(super) async fn asset(path: PathText, headers: HeaderMap) -> Response {
    file(&path.text, &headers)
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(EmbeddedFile { data, metadata }) = Files::get(path) else {
        return Problem::new(Name::NotFound).into_response();
    };
    // Weak, since the same file may go out compressed.
    let tag = format!("W/\"{}\"", crate::auth::url_text(&metadata.sha256_hash()));
    let unchanged = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // The binary may be a newer one at the next request, so browsers ask each time, which is cheap.
    let caching = [
        (header::ETAG, HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    if unchanged {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, media_type(path))], data.into_owned()).into_response()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// How to log in: one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Credentials {
    /// The secret of a one-time login link.
    #[serde(default)]
    link: Option<String>,
    /// A bearer token with the role `admin`.
    #[serde(default)]
    token: Option<String>,
}

/// Who is logged in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Session {
    /// For whom the console acts, as the audit names him: the subject of the token, or `link:` and the user of the
    /// operating system who had the login link printed.
    #[schema(example = "link:ada")]
    subject: String,
    /// When the login ends.
    expires_at: Moment,
    /// How long a request is served, in milliseconds: later it is answered with a problem.
    request_timeout_ms: u64,
}

/// Log in to the console
#[utoipa::path(
    post, path = "/console/session", tag = "console", operation_id = "logIn",
    request_body = Credentials,
    responses(
        (status = 204, description = "Logged in", headers(("Set-Cookie" = String, description = "The login"))),
        (status = 401, description = "unauthenticated"),
        (status = 403, description = "forbidden"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
    ),
)]
pub(super) async fn log_in(
    State(app): State<AppState>,
    _: NoQuery,
    body::Json(credentials): body::Json<Credentials>,
) -> Result<Response, Problem> {
    let subject = match (credentials.link, credentials.token) {
        (Some(secret), None) => {
            let login = blocking(&app.login_links, secret, |links, secret| links.consume(secret)).await?;
            let detail = "the login link is wrong, used up or too old; `tidings login-link` prints a new one";
            login.ok_or_else(|| Problem::new(Name::Unauthenticated).detail(detail))?.subject
        }
        (None, Some(token)) => {
            let identity = access::verify(&app, &token).await?;
            if !identity.admin {
                return Err(Problem::new(Name::Forbidden).detail("the role `admin` is needed"));
            }
            identity.subject.to_string()
        }
        _ => return Err(Problem::field("link", "or `token` must be given, and not both")),
    };
    let minutes = app.config.auth.session_minutes;
    let secret = blocking(&app.sessions, subject, move |sessions, subject| sessions.issue(minutes, subject)).await?;
    let seconds = u64::from(minutes) * 60;
    Ok((StatusCode::NO_CONTENT, set_cookie(&app, &secret, seconds)).into_response())
}

/// Log out of the console
#[utoipa::path(
    delete, path = "/console/session", tag = "console", operation_id = "logOut",
    params(("x-tidings-console" = String, Header, description = "`1`", example = "1")),
    responses((status = 204, description = "Logged out"), (status = 403, description = "forbidden")),
)]
pub(super) async fn log_out(State(app): State<AppState>, _: NoQuery, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(secret) = cookie(&headers, SESSION_COOKIE) {
        same_origin(&headers)?;
        blocking(&app.sessions, secret.into_owned(), |sessions, secret| sessions.consume(secret)).await?;
    }
    Ok((StatusCode::NO_CONTENT, set_cookie(&app, "", 0)).into_response())
}

/// Who is logged in to the console
#[utoipa::path(
    get, path = "/console/session", tag = "console", operation_id = "session",
    responses((status = 200, body = Session), (status = 401, description = "unauthenticated")),
)]
pub(super) async fn session(State(app): State<AppState>, headers: HeaderMap) -> Result<Json<Session>, Problem> {
    let secret = cookie(&headers, SESSION_COOKIE).ok_or_else(|| Problem::new(Name::Unauthenticated))?;
    let login = blocking(&app.sessions, secret.into_owned(), |sessions, secret| sessions.find(secret)).await?;
    let ended = || Problem::new(Name::Unauthenticated).detail("the console login has ended");
    let Login { ends, subject } = login.ok_or_else(ended)?;
    let request_timeout_ms = app.config.http.request_timeout_ms;
    Ok(Json(Session { subject, expires_at: Moment(ends), request_timeout_ms }))
}

fn set_cookie(app: &App, secret: &str, seconds: u64) -> [(header::HeaderName, HeaderValue); 1] {
    let secure = if app.config.http.secure_cookies { "; Secure" } else { "" };
    let text = format!("{SESSION_COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut value = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    [(header::SET_COOKIE, value)]
}
