//! What a process without an API tells of itself: whether it lives and works, and its metrics.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    extract::{Request, State},
    http::HeaderMap,
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::get,
};
use tidings_backbone::{Clock, EventIds};

use super::{
    access,
    edge::set_headers,
    health::{self, Health, Readiness},
    problem::{self, Name, Problem},
    request_id::RequestId,
    scrape::Scrape,
};
use crate::auth::Verifier;

/// What such a process tells.
#[derive(Debug)]
pub struct Ops {
    /// How it is.
    pub health: Health,
    /// Shows the metrics.
    pub scrape: Scrape,
    /// Tells the time.
    pub clock: Clock,
    /// Verifies the token of who asks for metrics; nothing where they are public.
    pub verifier: Option<Verifier>,
}

/// The routes of a process without an API.
pub fn ops(ops: Ops, ids: EventIds) -> Router {
    let clock = ops.clock.clone();
    let router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(async |State(ops): State<Arc<Ops>>| ops.health.report().await))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(ops));
    behind_edge(router, clock, ids)
}

/// Who may see the metrics of a server with an API may see these, with the same token.
async fn metrics(State(ops): State<Arc<Ops>>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(verifier) = &ops.verifier {
        access::admin_by_token(verifier, &headers).await?;
    }
    Ok(ops.scrape.shown().await)
}

/// The routes of a process that has not begun: it lives, and says what it waits for.
fn before_begin(readiness: Readiness, clock: Clock, ids: EventIds) -> Router {
    let router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(async |State(readiness): State<Readiness>| readiness.before_begin()))
        .fallback(async || Problem::new(Name::Unavailable).detail("the server is starting").retry_after(1))
        .with_state(readiness);
    behind_edge(router, clock, ids)
}

/// As at the API's edge, errors are problem documents, and headers say that nothing is to be loaded.
fn behind_edge(router: Router, clock: Clock, ids: EventIds) -> Router {
    let edge = async |State((clock, ids)): State<(Clock, EventIds)>, request: Request, next: Next| {
        let id = RequestId::of(request.headers(), &ids, &clock);
        let (mut response, _) = problem::render(next.run(request).await, id.as_str());
        set_headers(response.headers_mut(), &id);
        response
    };
    router
        .method_not_allowed_fallback(async || Problem::new(Name::MethodNotAllowed))
        .layer(from_fn_with_state((clock, ids), edge))
}

/// Where requests enter: the routes once there are any, and what tells of the start before that. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Entrance {
    before: Router,
    routes: Arc<OnceLock<Router>>,
}

impl Entrance {
    /// An entrance with nothing behind it so far; `readiness` tells what is waited for.
    pub fn new(readiness: Readiness) -> Self {
        let before = before_begin(readiness, Clock::system(), EventIds::from_os());
        Self { before, routes: Arc::default() }
    }

    /// Lets requests in.
    pub fn open(&self, routes: Router) {
        // It is opened once; a second time would be a fault that changes nothing.
        drop(self.routes.set(routes));
    }

    pub(super) fn router(&self) -> Router {
        self.routes.get().unwrap_or(&self.before).clone()
    }
}
