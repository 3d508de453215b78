//! The Tidings server: HTTP, auth, console, command line, configuration and roles.
//!
//! This room wires the others together. It knows flags, files and routes; it knows no SQL, and no
//! rule of a feature.
//!
//! In reading order:
//!
//! - [`config`]: what can be configured, and what is in effect.
//! - [`store`]: the data folder, shared by all commands.
//! - [`ledgers`]: what writes.
//! - [`load`]: many follows through the ledgers; [`follows_csv`] reads them from a file.
//! - [`journeys`]: where one event is, as it is shown.
//! - [`rebuilds`]: projections built anew, as operators ask for and see them.
//! - [`reconciliations`]: what follows from facts compared with them, as operators see it.
//! - [`auth`]: who is asking.
//! - [`http`]: the routes.
//! - [`serve`]: the server, started and ended in order.
//! - [`telemetry`]: metrics and traces of the process.
//! - [`demo`]: the server with a generated community.
//! - [`cli`]: the command line.

pub mod auth;
pub mod cli;
pub mod config;
pub mod demo;
mod error;
pub mod follows_csv;
pub mod http;
pub mod journeys;
pub mod ledgers;
pub mod load;
pub mod rebuilds;
pub mod reconciliations;
pub mod serve;
pub mod store;
pub mod telemetry;

pub use error::{Error, Result};
