//! The request that is being served, for whoever works on it: log lines say whose they are.

use std::sync::Arc;

use super::Context;

/// A request that is being served.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its identity, as answered in `x-request-id`.
    pub request_id: Arc<str>,
    /// Its span, where it is sampled.
    pub context: Option<Context>,
}

tokio::task_local! {
    static SCOPE: Scope;
}

/// Does `work` for a request.
pub async fn within<F: Future>(scope: Scope, work: F) -> F::Output {
    SCOPE.scope(scope, work).await
}

/// Looks at the request for which the present task works, if any.
pub fn current<T>(look: impl FnOnce(&Scope) -> T) -> Option<T> {
    SCOPE.try_with(look).ok()
}
