//! Schema changes, written per engine and applied in order of their version.

use std::borrow::Cow;

use sqlx::migrate::{Migration as SqlxMigration, MigrationType, Migrator};

use super::sqlite::Sqlite;
use crate::{Error, Result};

/// One schema change.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Rises over the whole product; a room owns a range (backbone: 1 to 99).
    pub version: i64,
    /// What it does, in a few words.
    pub name: &'static str,
    /// The statements for SQLite.
    pub sqlite: &'static str,
    /// The statements for MySQL and MariaDB, each ended by `;` at the end of a line. A crash leaves
    /// the ones before it done; the next run goes on from there.
    pub mysql: &'static str,
}

/// The tables of this crate: outbox, positions, parking lot, idempotency keys, audit, generations, rebuilds,
/// reconciliations, trails and what is counted.
pub const BACKBONE_MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "backbone",
        sqlite: include_str!("../../../../migrations/sqlite/0001_backbone.sql"),
        mysql: include_str!("../../../../migrations/mysql/0001_backbone.sql"),
    },
    Migration {
        version: 2,
        name: "part",
        sqlite: include_str!("../../../../migrations/sqlite/0002_part.sql"),
        // The tables of MySQL have had it from the first.
        mysql: "",
    },
    Migration {
        version: 3,
        name: "parking",
        sqlite: include_str!("../../../../migrations/sqlite/0003_parking.sql"),
        mysql: include_str!("../../../../migrations/mysql/0003_parking.sql"),
    },
    Migration {
        version: 5,
        name: "generation",
        sqlite: include_str!("../../../../migrations/sqlite/0005_generation.sql"),
        mysql: include_str!("../../../../migrations/mysql/0005_generation.sql"),
    },
    Migration {
        version: 6,
        name: "reconciliation",
        sqlite: include_str!("../../../../migrations/sqlite/0006_reconciliation.sql"),
        mysql: include_str!("../../../../migrations/mysql/0006_reconciliation.sql"),
    },
    Migration {
        version: 7,
        name: "journey",
        sqlite: include_str!("../../../../migrations/sqlite/0007_journey.sql"),
        mysql: include_str!("../../../../migrations/mysql/0007_journey.sql"),
    },
    Migration {
        version: 8,
        name: "counted",
        sqlite: include_str!("../../../../migrations/sqlite/0008_counted.sql"),
        mysql: include_str!("../../../../migrations/mysql/0008_counted.sql"),
    },
    Migration {
        version: 9,
        name: "clear",
        sqlite: include_str!("../../../../migrations/sqlite/0009_clear.sql"),
        mysql: include_str!("../../../../migrations/mysql/0009_clear.sql"),
    },
    Migration {
        version: 10,
        name: "parking lookups",
        sqlite: include_str!("../../../../migrations/sqlite/0010_parking_lookups.sql"),
        mysql: include_str!("../../../../migrations/mysql/0010_parking_lookups.sql"),
    },
    Migration {
        version: 11,
        name: "clear from",
        sqlite: include_str!("../../../../migrations/sqlite/0011_clear_from.sql"),
        mysql: include_str!("../../../../migrations/mysql/0011_clear_from.sql"),
    },
];

pub(super) async fn run(sqlite: &Sqlite, migrations: &[Migration]) -> Result<()> {
    let migrations = migrations
        .iter()
        .map(|migration| {
            SqlxMigration::new(
                migration.version,
                Cow::Borrowed(migration.name),
                MigrationType::Simple,
                sqlx::SqlSafeStr::into_sql_str(migration.sqlite),
                false,
            )
        })
        .collect();
    let mut migrator = Migrator::with_migrations(migrations);
    // An application may keep its own migrations, and its own table of them, in the same database.
    migrator.dangerous_set_table_name("_tidings_migrations");
    migrator.set_ignore_missing(true);
    sqlite.migrate(&migrator).await.map_err(Error::Migration)
}
