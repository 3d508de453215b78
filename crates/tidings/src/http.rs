//! HTTP: routes parse, authorise, call and map. No SQL, and no rule of a feature.
//!
//! In reading order: `router` (every route with who may call it), `access`, `edge` (what happens to
//! every request), `problem` (errors), `input` and `page` (what requests bring), then one file for
//! each group of routes, `ops` (what a process without an API tells), `scrape` (metrics), and `listener` (connections).

mod access;
mod admin;
mod audit;
mod body;
mod console;
mod cursor;
mod docs;
mod edge;
mod flow;
mod health;
mod input;
mod journey;
mod listener;
mod moment;
mod openapi;
mod ops;
mod page;
mod parking;
mod problem;
mod process;
mod rebuild;
mod reconciliation;
mod relation;
mod request_id;
mod router;
mod scrape;
mod state;
pub(crate) mod telemetry;
mod user;

pub use access::Access;
pub(crate) use flow::topic_ends;
pub use health::{Health, Readiness};
pub use listener::Listener;
pub use openapi::document as openapi_document;
pub use ops::{Entrance, Ops, ops};
pub use problem::{Name as ProblemName, Problem};
pub use router::{RouteInfo, router, routes};
pub use scrape::{Scrape, Sources};
pub use state::{App, AppState, Baseline};
