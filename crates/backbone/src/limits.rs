//! Every limit of this crate, with its unit in its name.

use std::time::Duration;

/// Commands the ledger decides in one transaction.
pub const LEDGER_BATCH_COMMANDS_MAX: usize = 1_024;
/// Commands that may wait for the ledger; one more is answered "busy".
pub const LEDGER_QUEUE_COMMANDS_MAX: usize = 16_384;
/// How long the ledger retries a batch while the database is in trouble, before it answers so.
pub const LEDGER_RETRY_TIME_MAX: Duration = Duration::from_secs(5);
/// Pause before the ledger's first such retry; it doubles with each.
pub const LEDGER_RETRY_GAP_MIN: Duration = Duration::from_millis(10);

/// Rows of one multi-row statement.
pub const STATEMENT_ROWS_MAX: usize = 128;
/// Bytes of the payload of one event.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Events a projector applies in one transaction.
pub const PROJECTOR_BATCH_EVENTS_MAX: usize = 1_024;
/// Time one call of a projector may take before it counts as failed.
pub const PROJECTOR_APPLY_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest pause between tries while a dependency is down.
pub const PROJECTOR_BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Pause before the first such try; it doubles with each.
pub const PROJECTOR_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// How often a projector looks for commits of other processes.
pub const OTHER_PROCESS_POLL_GAP: Duration = Duration::from_millis(25);

/// Parked keys that one round of retries takes.
pub const PARKING_ROUND_KEYS_MAX: usize = 64;
/// Waiting events of one key that one transaction applies.
pub const PARKING_ROUND_EVENTS_MAX: usize = 500;
/// Characters of an error that the parking lot keeps.
pub const PARKING_ERROR_CHARS_MAX: usize = 4_000;

/// Rows that one transaction of the retention deletes.
pub const RETENTION_BATCH_ROWS_MAX: usize = 5_000;

/// Connections for reading, each with a thread of its own.
pub const SQLITE_READERS_MAX: u32 = 4;
/// How long a statement waits for another process that is writing.
pub const SQLITE_BUSY_TIME_MAX: Duration = Duration::from_secs(10);
