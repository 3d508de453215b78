//! Requests, as somebody: a user, an admin or nobody.

use reqwest::{Method, RequestBuilder, header};
use serde_json::Value;

use crate::{
    model::{Change, Outcome, User},
    world::World,
};

/// Somebody who calls a world.
#[derive(Clone, Debug)]
pub struct Caller<'w> {
    world: &'w World,
    token: Option<String>,
}

/// What was answered, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: header::HeaderMap,
    /// The body.
    pub text: String,
}

impl<'w> Caller<'w> {
    pub(crate) fn new(world: &'w World, token: Option<String>) -> Self {
        Self { world, token }
    }

    /// A request to be completed; it goes to where the server is now.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.world.client().request(method, format!("{}{path}", self.world.url()));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// GETs a path.
    pub async fn get(&self, path: &str) -> Answer {
        sent(self.request(Method::GET, path)).await
    }

    /// GETs a path that must answer 200.
    pub async fn read(&self, path: &str) -> Value {
        self.get(path).await.json(200)
    }

    /// POSTs JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        sent(self.request(Method::POST, path).json(body)).await
    }

    /// Asks for a change of the caller's follow of `to`.
    pub async fn change(&self, change: Change, to: User) -> Answer {
        sent(self.change_request(change, to)).await
    }

    /// The request of [`Caller::change`], to be completed.
    pub fn change_request(&self, change: Change, to: User) -> RequestBuilder {
        let method = match change {
            Change::Follow => Method::PUT,
            Change::Unfollow => Method::DELETE,
        };
        self.request(method, &format!("/v1/me/following/{to}"))
    }

    /// Follows, which must be answered 200.
    pub async fn follow(&self, to: User) -> Outcome {
        self.change(Change::Follow, to).await.outcome()
    }

    /// Unfollows, which must be answered 200.
    pub async fn unfollow(&self, to: User) -> Outcome {
        self.change(Change::Unfollow, to).await.outcome()
    }

    /// Pages a list to its end by cursor, `limit` lines at a time.
    pub async fn pages(&self, path: &str, limit: u32) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        let join = if path.contains('?') { '&' } else { '?' };
        loop {
            let page = self.read(&format!("{path}{join}limit={limit}{cursor}")).await;
            items.extend(page["items"].as_array().expect("a list has items").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }
}

/// Sends a request that must be answered, whatever the answer is.
pub async fn sent(request: RequestBuilder) -> Answer {
    try_send(request).await.expect("the server should answer")
}

/// Sends a request that may find no server, or one that dies over it.
///
/// # Errors
/// When no whole answer came.
pub async fn try_send(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer { status, headers, text: response.text().await? })
}

impl Answer {
    /// The JSON of an answer that must have this status.
    #[track_caller]
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// What a change was answered with, which must be 200.
    #[track_caller]
    pub fn outcome(&self) -> Outcome {
        let body = self.json(200);
        let following = body["following"].as_bool().expect("`following` is a boolean");
        assert_eq!(body["followed_at"].is_string(), following, "since when, if and only if: {body}");
        Outcome {
            changed: body["changed"].as_bool().expect("`changed` is a boolean"),
            following,
            version: body["version"].as_u64().expect("`version` is a number"),
        }
    }

    /// The name of the problem that this must be, after a look at its shape (RFC 9457).
    #[track_caller]
    pub fn problem(&self) -> String {
        let text = &self.text;
        assert_eq!(self.header("content-type"), "application/problem+json", "{} {text}", self.status);
        let body = self.json(self.status);
        assert_eq!(body["status"], self.status, "{text}");
        assert_eq!(body["request_id"], self.header("x-request-id"), "{text}");
        assert!(body["title"].as_str().is_some_and(|title| !title.is_empty()), "{text}");
        let kind = body["type"].as_str().unwrap_or_default();
        kind.strip_prefix("/problems/").unwrap_or_else(|| panic!("`type` leads to a page: {text}")).to_owned()
    }

    /// Asserts that this is the problem `name`.
    #[track_caller]
    pub fn is_problem(&self, status: u16, name: &str) {
        assert_eq!((self.status, self.problem().as_str()), (status, name), "{}", self.text);
    }

    /// Asserts that this is a malformed request, and that the problem names `field`.
    #[track_caller]
    pub fn is_bad(&self, field: &str) {
        self.is_problem(400, "bad-request");
        assert_eq!(self.json(400)["errors"][0]["field"], field, "{}", self.text);
    }

    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or_default())
    }
}

/// The ids in `field` of the items of a list.
pub fn ids(items: &[Value], field: &str) -> Vec<User> {
    let id = |item: &Value| item[field].as_str().and_then(|text| text.parse().ok());
    items.iter().map(|item| id(item).unwrap_or_else(|| panic!("`{field}` is an id: {item}"))).collect()
}
