//! What describes the API: OpenAPI, the browsable page, the pages of problems, the public key.

use std::sync::{Arc, LazyLock};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Serialize;

use super::{
    input::PathText,
    openapi,
    problem::{Name, Problem},
    state::AppState,
};

/// The page's library sets styles from its script; scripts still come from files alone.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// This description
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "operation", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")),
)]
pub(super) async fn openapi() -> impl IntoResponse {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
        let document = openapi::document();
        document.to_json().map(Bytes::from).unwrap_or_default()
    });
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}

/// The browsable page lives below its path, so that its files do.
pub(super) async fn page() -> Redirect {
    Redirect::temporary("/v1/docs/")
}

pub(super) async fn page_index() -> Response {
    page_file("")
}

pub(super) async fn page_asset(path: PathText) -> Response {
    page_file(&path.text)
}

fn page_file(path: &str) -> Response {
    let config = utoipa_swagger_ui::Config::from("/v1/openapi.json").validator_url("none");
    match utoipa_swagger_ui::serve(path, Arc::new(config)) {
        Ok(Some(file)) => {
            let headers = [
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
                (header::CONTENT_SECURITY_POLICY, POLICY),
            ];
            let media_type = [(header::CONTENT_TYPE, file.content_type)];
            (headers, media_type, file.bytes.into_owned()).into_response()
        }
        Ok(None) => Problem::new(Name::NotFound).into_response(),
        Err(error) => Problem::internal(&*error).into_response(),
    }
}

/// What a problem means and what to do about it
#[utoipa::path(
    get, path = "/problems/{name}", tag = "operation", operation_id = "problem",
    params(("name" = String, Path, example = "rate-limited")),
    responses(
        (status = 200, body = String, content_type = "text/markdown"),
        (status = 404, description = "not-found"),
    ),
)]
pub(super) async fn problem(path: PathText) -> Result<impl IntoResponse, Problem> {
    let name = Name::from_slug(&path.text).ok_or_else(|| Problem::new(Name::NotFound))?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], name.page()))
}

/// A key set, as RFC 7517 describes it.
#[derive(Serialize)]
struct KeySet {
    keys: [jsonwebtoken::jwk::Jwk; 1],
}

/// The public key that verifies own tokens
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "operation", operation_id = "jwks",
    responses((status = 200, description = "RFC 7517", content_type = "application/json")),
)]
pub(super) async fn jwks(State(app): State<AppState>) -> Result<impl IntoResponse, Problem> {
    let key = app.verifier.own_key().await?;
    let headers = [(header::CACHE_CONTROL, "public, max-age=300")];
    Ok((headers, Json(KeySet { keys: [key.public().clone()] })))
}
