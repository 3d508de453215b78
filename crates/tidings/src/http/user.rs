//! Routes of the user registry.

use axum::{
    Json,
    extract::{Extension, State},
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use tidings_community::{
    UserId,
    user::{
        Handle, User,
        facts::{Refusal, Register, Registered},
        read,
    },
};
use utoipa::ToSchema;

use super::{
    body,
    input::{IDEMPOTENCY_KEY_TEXT, NoQuery, Origin, PathUser, Query, idempotency_key},
    problem::{Name, Problem},
    state::AppState,
};
use crate::auth::Identity;

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UserView {
    /// The identity.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// The unique name.
    #[schema(value_type = String, example = "ada")]
    handle: Handle,
}

/// A user to be registered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewUser {
    /// The identity wanted; without one, the registry gives one.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "42")]
    user_id: Option<UserId>,
    /// The unique name: 1 to 32 of `a-z 0-9 _ . -`, beginning with a letter or digit.
    #[schema(value_type = String, example = "ada")]
    handle: Handle,
}

/// A registered user.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RegisteredUser {
    /// The identity.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// The unique name.
    #[schema(value_type = String, example = "ada")]
    handle: Handle,
    /// Position in the dense numbering of users, from 0.
    ordinal: u32,
    /// Whether the user is new.
    changed: bool,
}

/// The problem of a user who is not registered, named by the parameter `field`.
pub(super) fn unknown_user(field: &str, user: UserId) -> Problem {
    Problem::new(Name::UnknownUser).at(field, format!("names user {user}, who is not registered"))
}

/// A user
#[utoipa::path(
    get, path = "/v1/users/{user_id}", tag = "user", operation_id = "user",
    params(("user_id" = String, Path, example = "42")),
    responses((status = 200, body = UserView), (status = 404, description = "unknown-user")),
)]
pub(super) async fn user(
    State(app): State<AppState>,
    PathUser(user_id): PathUser,
    query: Query,
) -> Result<Json<UserView>, Problem> {
    query.end()?;
    let mut tx = app.db.read().await?;
    let user = read::get(&mut tx.conn(), user_id).await?;
    user.map(view).ok_or_else(|| unknown_user("user_id", user_id))
}

/// The user with a handle
#[utoipa::path(
    get, path = "/v1/users", tag = "user", operation_id = "userByHandle",
    params(("handle" = String, Query, example = "ada")),
    responses((status = 200, body = UserView), (status = 404, description = "unknown-user")),
)]
pub(super) async fn user_by_handle(State(app): State<AppState>, mut query: Query) -> Result<Json<UserView>, Problem> {
    let text = query.require("handle")?;
    query.end()?;
    let handle: Handle = text.parse().map_err(|error| Problem::field("handle", format!("is wrong: {error}")))?;
    let mut tx = app.db.read().await?;
    let user = read::by_handle(&mut tx.conn(), &handle).await?;
    let unknown = || Problem::new(Name::UnknownUser).at("handle", format!("is {handle}, which nobody has"));
    user.map(view).ok_or_else(unknown)
}

fn view(user: User) -> Json<UserView> {
    Json(UserView { user_id: user.user_id, handle: user.handle })
}

/// Register a user
///
/// Registering the same id with the same handle again changes nothing.
#[utoipa::path(
    post, path = "/v1/admin/users", tag = "admin", operation_id = "registerUser",
    params(("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT)),
    request_body = NewUser,
    responses(
        (status = 201, body = RegisteredUser, description = "Registered"),
        (status = 200, body = RegisteredUser, description = "Registered before"),
        (status = 409, description = "handle-taken, user-exists"),
        (status = 413, description = "body-too-large"),
        (status = 415, description = "unsupported-media-type"),
        (status = 422, description = "idempotency-key-reused"),
    ),
)]
pub(super) async fn register(
    State(app): State<AppState>,
    Extension(identity): Extension<Identity>,
    _: NoQuery,
    headers: HeaderMap,
    Origin(metadata): Origin,
    body::Json(NewUser { user_id, handle }): body::Json<NewUser>,
) -> Result<(StatusCode, Json<RegisteredUser>), Problem> {
    let id = user_id.map(|id| id.to_string()).unwrap_or_default();
    let content = [id.as_bytes(), handle.as_str().as_bytes()];
    let wanted = handle.clone();
    let key = idempotency_key(&headers, format!("admin/{}/user", identity.subject), &content)?;
    let answer = app.ledgers.users.submit(Register { id: user_id, handle, metadata }, key).await?;
    let Registered { user_id, handle, ordinal, changed } = answer.map_err(|refusal| match refusal {
        Refusal::UserExists => {
            Problem::new(Name::UserExists).at("user_id", format!("is {id}, who is registered with another handle"))
        }
        Refusal::HandleTaken => {
            Problem::new(Name::HandleTaken).at("handle", format!("is {wanted}, which another user has"))
        }
        Refusal::IdsExhausted => Problem::field("user_id", "must be given, since the highest possible id is in use"),
    })?;
    let status = if changed { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(RegisteredUser { user_id, handle, ordinal, changed })))
}
