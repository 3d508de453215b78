//! Routes of the follow graph.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidings_community::{
    UserId,
    limits::STATUS_TARGETS_MAX,
    relation::{
        bucket::{FollowBucket, Limited},
        facts::{Change, Command, Outcome, Refusal},
        read::{self, Entry, List},
        status,
    },
};
use utoipa::ToSchema;

use super::{
    access::Me,
    cursor::ListName,
    input::{IDEMPOTENCY_KEY_TEXT, NoQuery, Origin, PathUser, Query, idempotency_key, user_id},
    moment::Moment,
    page::{self, CursorParams, Items, OffsetParam},
    problem::{Name, Problem},
    state::{App, AppState},
    user::unknown_user,
};

const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The state of a follow after a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FollowState {
    /// The user who is, or is not, followed.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// Whether the caller follows him now.
    following: bool,
    /// Whether this request changed that. Only then is there an event.
    changed: bool,
    /// Rises with each change of the pair; 0 if it never changed.
    #[schema(example = 1)]
    version: u64,
    /// Since when the follow holds; null when there is none.
    followed_at: Option<Moment>,
}

/// One line of a list of users.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FollowEntry {
    /// Who is in the list.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// His name.
    #[schema(value_type = String, example = "ada")]
    handle: tidings_community::user::Handle,
    /// Since when the follow holds.
    followed_at: Moment,
}

/// How the caller stands to another user.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RelationStatus {
    /// The other user.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// Whether the caller follows him.
    following: bool,
    /// Whether he follows the caller.
    followed_by: bool,
    /// Whether each follows the other.
    mutual: bool,
}

/// A user's counters.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CounterValues {
    /// The user.
    #[schema(value_type = String, example = "42")]
    user_id: UserId,
    /// How many he follows.
    followings: u32,
    /// How many follow him.
    followers: u32,
    /// Posts he has published.
    posts: u32,
    /// Likes that his posts and comments have.
    likes_received: u32,
    /// Favorites that his posts and comments have.
    favorites_received: u32,
}

/// Follow a user
///
/// Following somebody who is followed already changes nothing. Every request takes a token, also one
/// that changes nothing or repeats another with its `Idempotency-Key`.
#[utoipa::path(
    put, path = "/v1/me/following/{user_id}", tag = "relation", operation_id = "follow",
    params(
        ("user_id" = String, Path, description = "The user to follow", example = "42"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses(
        (status = 200, body = FollowState, headers(
            ("RateLimit-Policy" = String, description = "`\"follow\";q=100;w=100`"),
            ("RateLimit" = String, description = "`\"follow\";r=99;t=1`"),
        )),
        (status = 404, description = "unknown-user"),
        (status = 422, description = "yourself, idempotency-key-reused"),
        (status = 429, description = "rate-limited"),
    ),
)]
pub(super) async fn follow(
    State(app): State<AppState>,
    Me(me): Me,
    PathUser(to): PathUser,
    _: NoQuery,
    headers: HeaderMap,
    Origin(metadata): Origin,
) -> Response {
    let command = Command { change: Change::Follow, from: me, to, metadata };
    change(&app, command, &headers).await
}

/// Unfollow a user
///
/// Unfollowing somebody who is not followed changes nothing. Every request takes a token, also one
/// that changes nothing or repeats another with its `Idempotency-Key`.
#[utoipa::path(
    delete, path = "/v1/me/following/{user_id}", tag = "relation", operation_id = "unfollow",
    params(
        ("user_id" = String, Path, description = "The user to unfollow", example = "42"),
        ("Idempotency-Key" = Option<String>, Header, description = IDEMPOTENCY_KEY_TEXT),
    ),
    responses(
        (status = 200, body = FollowState, headers(
            ("RateLimit-Policy" = String, description = "`\"follow\";q=100;w=100`"),
            ("RateLimit" = String, description = "`\"follow\";r=99;t=1`"),
        )),
        (status = 404, description = "unknown-user"),
        (status = 422, description = "yourself, idempotency-key-reused"),
        (status = 429, description = "rate-limited"),
    ),
)]
pub(super) async fn unfollow(
    State(app): State<AppState>,
    Me(me): Me,
    PathUser(to): PathUser,
    _: NoQuery,
    headers: HeaderMap,
    Origin(metadata): Origin,
) -> Response {
    let command = Command { change: Change::Unfollow, from: me, to, metadata };
    change(&app, command, &headers).await
}

/// Takes a token and hands the command to the ledger. Every answer tells what is left.
async fn change(app: &App, command: Command, headers: &HeaderMap) -> Response {
    match app.follow_bucket.take(command.from).await {
        Ok(taken) => {
            let answer = submit(app, command, headers).await.map(Json);
            (rate_headers(&app.follow_bucket, taken.remaining, taken.reset_seconds), answer).into_response()
        }
        Err(Limited { retry_after }) => {
            let seconds = retry_after.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX).max(1);
            let problem = Problem::new(Name::RateLimited).retry_after(seconds);
            (rate_headers(&app.follow_bucket, 0, seconds), problem).into_response()
        }
    }
}

async fn submit(app: &App, command: Command, headers: &HeaderMap) -> Result<FollowState, Problem> {
    let (me, to) = (command.from, command.to);
    let method = match command.change {
        Change::Follow => Method::PUT,
        Change::Unfollow => Method::DELETE,
    };
    let content = [method.as_str().as_bytes(), &to.get().to_be_bytes()];
    let key = idempotency_key(headers, format!("user/{me}/relation"), &content)?;
    match app.ledgers.relations.submit(command, key).await? {
        Ok(Outcome { changed, following, version, followed_at }) => {
            Ok(FollowState { user_id: to, following, changed, version, followed_at: followed_at.map(Moment) })
        }
        Err(Refusal::Yourself) => Err(Problem::new(Name::Yourself).at("user_id", "is who asks")),
        Err(Refusal::UnknownUser(user)) if user == me => Err(unknown_user("authorization", user)),
        Err(Refusal::UnknownUser(user)) => Err(unknown_user("user_id", user)),
    }
}

/// The headers of draft-ietf-httpapi-ratelimit-headers.
fn rate_headers(bucket: &FollowBucket, remaining: u32, reset_seconds: u64) -> [(HeaderName, HeaderValue); 2] {
    let capacity = bucket.options().capacity.get();
    let window_seconds = (bucket.options().refill * capacity).as_secs().max(1);
    let policy = format!("\"follow\";q={capacity};w={window_seconds}");
    let left = format!("\"follow\";r={remaining};t={reset_seconds}");
    let value = |text: String| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
    [(RATE_LIMIT_POLICY, value(policy)), (RATE_LIMIT, value(left))]
}

/// How the caller stands to up to 100 users
#[utoipa::path(
    get, path = "/v1/me/relations", tag = "relation", operation_id = "relations",
    params(("ids" = String, Query, description = "1 to 100 ids, separated by commas", example = "42,43")),
    responses((status = 200, body = Items<RelationStatus>, description = "In the order asked for")),
)]
pub(super) async fn relations(
    State(app): State<AppState>,
    Me(me): Me,
    mut query: Query,
) -> Result<Json<Items<RelationStatus>>, Problem> {
    let text = query.require("ids")?;
    query.end()?;
    let targets: Vec<UserId> = text.split(',').map(|id| user_id("ids", id)).collect::<Result<_, _>>()?;
    if targets.len() > STATUS_TARGETS_MAX {
        return Err(Problem::field("ids", format!("must be at most {STATUS_TARGETS_MAX}")));
    }
    let mut tx = app.db.read().await?;
    let statuses = status::status(&mut tx.conn(), me, &targets).await?;
    let items = statuses
        .into_iter()
        .map(|status| RelationStatus {
            user_id: status.user_id,
            following: status.following,
            followed_by: status.followed_by,
            mutual: status.mutual(),
        })
        .collect();
    Ok(Json(Items { items, next_cursor: None }))
}

/// Whom a user follows, newest first
#[utoipa::path(
    get, path = "/v1/users/{user_id}/following", tag = "relation", operation_id = "followings",
    params(("user_id" = String, Path, example = "42"), CursorParams, OffsetParam),
    responses((status = 200, body = Items<FollowEntry>), (status = 404, description = "unknown-user")),
)]
pub(super) async fn followings(
    State(app): State<AppState>,
    PathUser(user): PathUser,
    query: Query,
) -> Result<Json<Items<FollowEntry>>, Problem> {
    let name = ListName::Followings(user);
    let page = page::page(query, name)?;
    let list = app.lists.followings(user, &page).await?;
    Ok(Json(entries(name, list.ok_or_else(|| unknown_user("user_id", user))?)))
}

/// Who follows a user, newest first
#[utoipa::path(
    get, path = "/v1/users/{user_id}/followers", tag = "relation", operation_id = "followers",
    params(("user_id" = String, Path, example = "42"), CursorParams, OffsetParam),
    responses((status = 200, body = Items<FollowEntry>), (status = 404, description = "unknown-user")),
)]
pub(super) async fn followers(
    State(app): State<AppState>,
    PathUser(user): PathUser,
    query: Query,
) -> Result<Json<Items<FollowEntry>>, Problem> {
    let name = ListName::Followers(user);
    let page = page::page(query, name)?;
    let list = app.lists.followers(user, &page).await?;
    Ok(Json(entries(name, list.ok_or_else(|| unknown_user("user_id", user))?)))
}

/// Whom two users both follow, by id
///
/// `followed_at` is since when the user of the path follows.
#[utoipa::path(
    get, path = "/v1/users/{user_id}/following/common", tag = "relation", operation_id = "commonFollowings",
    params(
        ("user_id" = String, Path, example = "42"),
        ("with" = String, Query, description = "The other user", example = "43"),
        CursorParams,
    ),
    responses((status = 200, body = Items<FollowEntry>), (status = 404, description = "unknown-user")),
)]
pub(super) async fn common(
    State(app): State<AppState>,
    PathUser(user): PathUser,
    mut query: Query,
) -> Result<Json<Items<FollowEntry>>, Problem> {
    let other = user_id("with", &query.require("with")?)?;
    let name = ListName::Common(user, other);
    let limit = page::limit(&mut query)?;
    let after: Option<UserId> = page::place(&mut query, name)?;
    query.end()?;
    let mut tx = app.db.read().await?;
    let mut conn = tx.conn();
    let Some(list) = read::common(&mut conn, user, other, limit, after).await? else {
        let known = tidings_community::user::read::exists(&mut conn, user).await?;
        return Err(if known { unknown_user("with", other) } else { unknown_user("user_id", user) });
    };
    Ok(Json(entries(name, list)))
}

/// A user's counters
#[utoipa::path(
    get, path = "/v1/users/{user_id}/counters", tag = "relation", operation_id = "counters",
    params(("user_id" = String, Path, example = "42")),
    responses((status = 200, body = CounterValues), (status = 404, description = "unknown-user")),
)]
pub(super) async fn counters(
    State(app): State<AppState>,
    PathUser(user_id): PathUser,
    query: Query,
) -> Result<Json<CounterValues>, Problem> {
    query.end()?;
    let counters = app.counters.read(user_id).await?.ok_or_else(|| unknown_user("user_id", user_id))?;
    Ok(Json(CounterValues {
        user_id,
        followings: counters.followings,
        followers: counters.followers,
        posts: counters.posts,
        likes_received: counters.likes_received,
        favorites_received: counters.favorites_received,
    }))
}

fn entries<P: super::cursor::Place>(name: ListName, list: List<P>) -> Items<FollowEntry> {
    let line =
        |Entry { user_id, handle, followed_at }| FollowEntry { user_id, handle, followed_at: Moment(followed_at) };
    Items::new(list.entries.into_iter().map(line).collect(), name, list.next.as_ref())
}
