//! Every route, with who may call it. What is not declared [`Access::Open`] is closed: the check
//! stands before the route, so a route cannot forget it.

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, get},
};
use tower_http::compression::CompressionLayer;
use utoipa::openapi::{RefOr, Schema, path::Paths};
use utoipa_axum::{router::UtoipaMethodRouter, routes};

use super::{
    access::{self, Access},
    admin, audit, console, docs,
    edge::{self, Edge},
    flow, health, journey, parking,
    problem::{Name, Problem},
    rebuild, reconciliation, relation, scrape,
    state::AppState,
    user,
};

/// A route as it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method, in capitals. `HEAD` goes with every `GET`.
    pub method: &'static str,
    /// The template of the path, such as `/v1/users/{user_id}`.
    pub path: String,
    /// Who may call it.
    pub access: Access,
}

type NamedSchema = (String, RefOr<Schema>);

/// Paths that share handlers, before they are put together.
pub(super) struct Declared {
    pub(super) access: Access,
    pub(super) document: Option<(Vec<NamedSchema>, Paths)>,
    routes: Vec<(&'static str, String)>,
    handlers: MethodRouter<AppState>,
}

/// Every route there is.
pub(super) fn declared() -> Vec<Declared> {
    use Access::{Admin, Me, Member, Open};
    vec![
        // The follow graph
        api(Me, routes!(relation::follow, relation::unfollow)),
        api(Me, routes!(relation::relations)),
        api(Member, routes!(relation::followings)),
        api(Member, routes!(relation::followers)),
        api(Member, routes!(relation::common)),
        api(Member, routes!(relation::counters)),
        // The registry of users
        api(Member, routes!(user::user)),
        api(Member, routes!(user::user_by_handle)),
        api(Admin, routes!(user::register)),
        // For operators
        api(Admin, routes!(flow::flow)),
        api(Admin, routes!(admin::events)),
        api(Admin, routes!(admin::event)),
        api(Admin, routes!(journey::journey)),
        api(Admin, routes!(parking::parked)),
        api(Admin, routes!(parking::parked_events)),
        api(Admin, routes!(parking::redrive)),
        api(Admin, routes!(parking::discard)),
        api(Admin, routes!(audit::audit)),
        api(Admin, routes!(rebuild::rebuilds, rebuild::start)),
        api(Admin, routes!(rebuild::pause)),
        api(Admin, routes!(rebuild::resume)),
        api(Admin, routes!(rebuild::switch)),
        api(Admin, routes!(rebuild::cancel)),
        api(Admin, routes!(reconciliation::reconciliations, reconciliation::start)),
        api(Admin, routes!(reconciliation::reconciliation)),
        api(Admin, routes!(reconciliation::repair)),
        api(Admin, routes!(scrape::metrics)), // Open where `http.metrics_public` says so.
        // For everybody
        api(Open, routes!(health::live)),
        api(Open, routes!(health::ready)),
        api(Open, routes!(docs::openapi)),
        api(Open, routes!(docs::problem)),
        api(Open, routes!(docs::jwks)),
        api(Open, routes!(console::log_in, console::log_out, console::session)),
        // Pages and their files
        file(Open, "/", get(console::shell)),
        file(Open, "/login", get(console::shell)),
        file(Open, "/console/{*path}", get(console::asset)),
        file(Open, "/v1/docs", get(docs::page)),
        file(Open, "/v1/docs/", get(docs::page_index)),
        file(Open, "/v1/docs/{*path}", get(docs::page_asset)),
    ]
}

/// Every route with who may call it, for tests that walk them.
pub fn routes() -> Vec<RouteInfo> {
    let infos = |Declared { access, routes, .. }| {
        routes.into_iter().map(move |(method, path)| RouteInfo { method, path, access })
    };
    declared().into_iter().flat_map(infos).collect()
}

/// The router, ready to serve.
pub fn router(app: AppState) -> Router {
    let mut router = Router::new();
    for Declared { access, routes, handlers, .. } in declared() {
        let mut paths: Vec<String> = routes.into_iter().map(|(_, path)| path).collect();
        paths.dedup();
        for path in paths {
            let open = access == Access::Open || (path == "/metrics" && app.config.http.metrics_public);
            let handlers = handlers.clone();
            let guarded = if open {
                handlers
            } else {
                // Only what has a handler is guarded: other methods are answered 405 to anybody.
                handlers.route_layer(from_fn_with_state((access, app.clone()), access::check))
            };
            router = router.route(&path, guarded);
        }
    }
    router
        .fallback(|| async { Problem::new(Name::NotFound) })
        .layer(from_fn_with_state(Edge::new(app.clone()), edge::serve))
        .with_state(app)
}

/// A route of the API, which describes itself.
fn api(access: Access, (schemas, paths, handlers): UtoipaMethodRouter<AppState>) -> Declared {
    let mut routes = Vec::new();
    for (path, item) in &paths.paths {
        let methods = [("GET", &item.get), ("PUT", &item.put), ("POST", &item.post), ("DELETE", &item.delete)];
        routes.extend(
            methods.into_iter().filter(|(_, operation)| operation.is_some()).map(|(method, _)| (method, path.clone())),
        );
    }
    Declared { access, document: Some((schemas, paths)), routes, handlers }
}

/// A file or page, which the description of the API leaves out.
fn file(access: Access, path: &str, handlers: MethodRouter<AppState>) -> Declared {
    let handlers = handlers.layer(CompressionLayer::new());
    Declared { access, document: None, routes: vec![("GET", path.to_owned())], handlers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_surface_is_closed_and_what_is_open_was_meant_to_be() {
        for route in routes() {
            let admin = route.path.starts_with("/v1/admin/") || route.path == "/metrics";
            assert_eq!(admin, route.access == Access::Admin, "{} {}", route.method, route.path);
            assert_eq!(route.path.starts_with("/v1/me/"), route.access == Access::Me, "{}", route.path);
        }
        let open: Vec<_> = routes().into_iter().filter(|route| route.access == Access::Open).collect();
        let open: Vec<_> = open.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
        insta::assert_snapshot!(open.join("\n"));
    }
}
