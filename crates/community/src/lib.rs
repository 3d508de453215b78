//! What users, follows and counters mean: commands on facts, projections of their events, reads.
//!
//! This room knows SQL on a transaction handed in. It knows neither HTTP nor where events travel.
//! Each feature is a folder with the same three files:
//!
//! - `facts.rs`: commands. Validate, change facts, emit events, in one transaction.
//! - `projection.rs`: what follows from the events, a batch at a time.
//! - `read.rs`: queries.
//!
//! In reading order:
//!
//! - [`user`]: the registry of users: id, handle, dense ordinal.
//! - [`relation`]: the follow graph, its mirror, lists and counters.

mod envelope;
mod error;
pub mod limits;
mod telemetry;

pub mod relation;
pub mod user;

pub use error::{Error, Result};
pub use relation::Pair;
pub use telemetry::METRICS;
pub use user::UserId;

use tidings_backbone::db::Migration;

/// The tables of every feature, in order. Versions 100 and up belong to this crate.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 100,
        name: "user",
        sqlite: include_str!("../../../migrations/sqlite/0100_user.sql"),
        mysql: include_str!("../../../migrations/mysql/0100_user.sql"),
    },
    Migration {
        version: 101,
        name: "relation",
        sqlite: include_str!("../../../migrations/sqlite/0101_relation.sql"),
        mysql: include_str!("../../../migrations/mysql/0101_relation.sql"),
    },
    Migration {
        version: 102,
        name: "changes",
        sqlite: include_str!("../../../migrations/sqlite/0102_changes.sql"),
        // The table of MySQL has had the column from the first.
        mysql: "",
    },
    Migration {
        version: 103,
        name: "generation",
        sqlite: include_str!("../../../migrations/sqlite/0103_generation.sql"),
        mysql: include_str!("../../../migrations/mysql/0103_generation.sql"),
    },
    Migration {
        version: 104,
        name: "counter recount",
        sqlite: include_str!("../../../migrations/sqlite/0104_counter_recount.sql"),
        mysql: include_str!("../../../migrations/mysql/0104_counter_recount.sql"),
    },
];
