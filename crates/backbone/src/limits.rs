//! Every limit of this crate, with its unit in its name.

use std::time::Duration;

/// Commands the ledger decides in one transaction.
pub const LEDGER_BATCH_COMMANDS_MAX: usize = 1_024;
/// Batches that are committed at once where the database has several writers: while one waits for the disk,
/// another is decided.
pub const LEDGER_BATCHES_AT_ONCE: usize = 2;
/// Commands that must wait for a further batch to begin beside the one that is being committed: few are sooner
/// done with it, or after it.
pub const LEDGER_FURTHER_BATCH_COMMANDS_MIN: usize = 256;
/// Commands that may wait for the ledger; one more is answered "busy".
pub const LEDGER_QUEUE_COMMANDS_MAX: usize = 16_384;
/// How long the ledger goes on retrying a batch while the database is in trouble. The try in
/// flight may add its own wait, [`SQLITE_BUSY_TIME_MAX`] or [`MYSQL_LOCK_TIME_MAX`].
pub const LEDGER_RETRY_TIME_MAX: Duration = Duration::from_secs(5);
/// Pause before the ledger's first such retry; it doubles with each.
pub const LEDGER_RETRY_GAP_MIN: Duration = Duration::from_millis(10);
/// Times a ledger decides a batch again at once because another process was faster.
pub const LEDGER_RACES_MAX: usize = 5;

/// Rows of one multi-row statement.
pub const STATEMENT_ROWS_MAX: usize = 512;
/// Rows that a server is given as one argument.
pub const INPUT_ROWS_MAX: usize = 4_096;
/// Bytes of the payload of one event.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an event's type, key, aggregate type and aggregate id, each.
pub const EVENT_TEXT_BYTES_MAX: usize = 255;
/// Traces that the span of a batch is linked to; more are counted.
pub const TRACE_LINKS_MAX: usize = 32;
/// Events of one batch that have spans of their own; more are counted as dropped.
pub const TRACE_BATCH_EVENTS_MAX: usize = 1_024;

/// Bytes of an event's metadata as JSON.
pub const EVENT_METADATA_BYTES_MAX: usize = 64 * 1024;

/// Events a projector applies in one transaction.
pub const PROJECTOR_BATCH_EVENTS_MAX: usize = 1_024;
/// Bytes of payload and metadata after which a batch ends.
pub const PROJECTOR_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Transactions of one projector in one process that are under way at once, each with the batches of some parts.
pub const PROJECTOR_JOINT_AT_ONCE: usize = 2;
/// Events that must have gathered for a further transaction while one is under way: each costs its statements.
pub const PROJECTOR_FURTHER_BATCH_EVENTS_MIN: usize = 256;
/// Batches that wait for their transaction; a part has one at a time.
pub const PROJECTOR_SHARES_MAX: usize = 1_024;
/// Time one call of a projector may take before it is given up. It holds the write lock meanwhile.
pub const PROJECTOR_APPLY_TIME_MAX: Duration = Duration::from_secs(5);
/// Time the call after a commit may take before it is cut short.
pub const PROJECTOR_COMMITTED_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest pause between tries while a dependency is down.
pub const PROJECTOR_BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Pause before the first such try; it doubles with each.
pub const PROJECTOR_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Unknown event types that are each said once.
pub const UNKNOWN_TYPES_MAX: usize = 100;
/// How often a projector looks for commits of other processes.
pub const OTHER_PROCESS_POLL_GAP: Duration = Duration::from_millis(25);
/// How often it is noted up to where partitions of Kafka hold no event behind a projector's position. Retention that
/// removes an event sooner after it was applied than this may be taken for a loss.
pub const CLEAR_LOOK_GAP: Duration = Duration::from_secs(30);
/// How long a projector that ends may take to note it once more.
pub const CLEAR_LAST_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a process looks which generation of a projector is live, and whether one is to be built.
pub const GENERATION_LOOK_GAP: Duration = Duration::from_millis(500);
/// How long the process that leads a rebuild keeps the lead without a word.
pub const REBUILD_LEAD_TIME: Duration = Duration::from_secs(3);
/// Facts that one transaction of a rebuild copies.
pub const REBUILD_SEED_ROWS: usize = 2_000;
/// Rows of an old generation that one transaction removes.
pub const REBUILD_REMOVE_ROWS: usize = 2_000;
/// How long a new generation is given to be as far as the old one, before it is checked anew.
pub const REBUILD_SWITCH_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a check waits until what is on its way has been applied.
pub const REBUILD_SETTLE_TIME_MAX: Duration = Duration::from_secs(60);

/// Parked keys that one round of retries takes.
pub const PARKING_ROUND_KEYS_MAX: usize = 64;
/// Waiting events of one key that one transaction applies.
pub const PARKING_ROUND_EVENTS_MAX: usize = 500;
/// Bytes of waiting events after which one transaction ends.
pub const PARKING_ROUND_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Time a round of retries may take before live events get their turn.
pub const PARKING_ROUND_TIME_MAX: Duration = Duration::from_secs(1);
/// How often a projector on a partition of Kafka looks whether a key was redriven, while nothing else happens.
pub const PARKING_LOOK_GAP: Duration = Duration::from_millis(500);
/// Pause before keys are looked at again that are due and that somebody else holds.
pub const PARKING_HELD_GAP: Duration = Duration::from_millis(100);
/// Characters of an error that the parking lot keeps.
pub const PARKING_ERROR_CHARS_MAX: usize = 4_000;

/// Bytes of waiting events that one look at them answers.
pub const PARKING_LOOK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Keys of one redrive. What matches beyond them is counted, and left for the next.
pub const REDRIVE_KEYS_MAX: usize = 20_000;
/// Keys of a redrive that the answer to a repeated request shows; all are counted.
pub const REDRIVE_KEPT_KEYS_MAX: usize = 100;
/// Time that a redrive with a rate may take.
pub const REDRIVE_TIME_MAX: Duration = Duration::from_hours(24);
/// Deaths of keys that a process tells one by one in [`ALERT_MINUTE`]; those beyond are told together.
pub const ALERT_DEATHS_SINGLY_MAX: usize = 20;
/// Time after which a process begins to tell one by one again.
pub const ALERT_MINUTE: Duration = Duration::from_mins(1);
/// Deaths that are told together at most.
pub const ALERT_CROWD_MAX: usize = 10_000;
/// Deaths of them that one transaction takes, or notes as told.
pub const ALERT_CROWD_CHUNK: usize = 500;
/// Keys of them that are named.
pub const ALERT_CROWD_NAMED: usize = 20;
/// Pause between looks for deaths that nobody was told of.
pub const ALERT_LOOK_GAP: Duration = Duration::from_secs(1);
/// Pause before an alert is sent again that was not taken; it doubles with each.
pub const ALERT_BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Longest pause between such tries.
pub const ALERT_BACKOFF_MAX: Duration = Duration::from_mins(5);
/// Bytes of the reason of an operator's action.
pub const AUDIT_REASON_BYTES_MAX: usize = 2_000;
/// Rows of the audit that one transaction of the retention deletes: some hold whole events.
pub const AUDIT_BATCH_ROWS_MAX: usize = 500;

/// Looks at numbers of the outbox that are missing, before whoever reads on stops in front of them.
pub const OPEN_INSERT_LOOKS_MAX: u32 = 6;
/// Pause between two such looks: far longer than it takes from a number to its row.
pub const OPEN_INSERT_LOOK_GAP: Duration = Duration::from_millis(100);
/// Last events of the outbox among which such numbers are looked for.
pub const STEADY_HEAD_EVENTS: usize = 1_000;

/// How exactly it is kept when a projector passed an event: it writes one row for as long.
pub const TRAIL_TICK: Duration = Duration::from_millis(100);
/// How much earlier than the end of its batch a position may be told to have moved: one whose batch takes longer is
/// dated anew, with one statement for all that share a transaction.
pub const POSITION_EARLY_MAX: Duration = Duration::from_millis(5);
/// How far clocks of writers and brokers may differ for a record to be looked for where it is.
pub const JOURNEY_CLOCK_SLACK: Duration = Duration::from_secs(10);
/// Records of the log that are looked through for one event.
pub const JOURNEY_RECORDS_MAX: usize = 500_000;
/// Time that looking through them may take.
pub const JOURNEY_SEARCH_TIME_MAX: Duration = Duration::from_secs(3);
/// Time that a search waits for those before it, of which one is under way at once.
pub const JOURNEY_TURN_TIME_MAX: Duration = Duration::from_secs(1);
/// Time that Kafka is given, in all, to tell where an event is.
pub const JOURNEY_LOG_TIME_MAX: Duration = Duration::from_secs(5);

/// Differences that one comparison keeps; more are only counted, and found by the next one.
pub const RECONCILE_DIFFERENCES_MAX: usize = 100_000;
/// Differences that one transaction repairs.
pub const RECONCILE_REPAIR_BATCH: usize = 500;
/// Differences that one transaction stores.
pub const RECONCILE_STORED_ROWS: usize = 2_000;
/// Differences of each check that are shown with a run.
pub const RECONCILE_EXAMPLES_MAX: usize = 20;
/// Bytes of each text of a difference that is stored.
pub const RECONCILE_TEXT_BYTES_MAX: usize = 500;
/// Runs that are kept, the last ones.
pub const RECONCILE_RUNS_KEPT: i64 = 100;
/// How often a process looks whether a run is due, or asked for.
pub const RECONCILE_LOOK_GAP: Duration = Duration::from_secs(1);
/// How long the process that does a run keeps it without a word.
pub const RECONCILE_LEASE_TIME: Duration = Duration::from_secs(15);
/// Processes that may end while they do one run, before it has failed.
pub const RECONCILE_TRIES_MAX: i64 = 3;
/// Time after which a run that nobody does may be given up for another one.
pub const RECONCILE_ABANDONED_TIME: Duration = Duration::from_secs(60);
/// Age up to which the differences of a run are repaired: later ones are to be looked for first.
pub const RECONCILE_REPAIR_AGE_MAX: Duration = Duration::from_hours(24);
/// Times that a batch of repairs is tried while the database is in trouble.
pub const RECONCILE_REPAIR_TRIES_MAX: u32 = 5;
/// Time from the start of a process to the first run on schedule, where there never was one.
pub const RECONCILE_FIRST_TIME: Duration = Duration::from_hours(1);
/// Rows of the outbox that are read at once.
pub const RECONCILE_PAGE_ROWS: i64 = 5_000;
/// Rows of the outbox and records that are kept in memory, to compare them one by one.
pub const RECONCILE_ROWS_MAX: u64 = 400_000;
/// Events that a reconciliation reads to find out what waits for a projector that does not catch up.
pub const RECONCILE_WAITING_MAX: i64 = 500_000;
/// Times that outbox and log are read once more to compare rows; shards beyond that are only counted.
pub const RECONCILE_SCANS_MAX: usize = 8;
/// How much earlier than its window outbox and log are read: clocks and commits are not in exact order.
pub const RECONCILE_WINDOW_MARGIN: Duration = Duration::from_mins(10);

/// Rows that one transaction of the retention deletes.
pub const RETENTION_BATCH_ROWS_MAX: usize = 5_000;

/// Connections for reading, each with a thread of its own.
pub const SQLITE_READERS_MAX: u32 = 4;
/// How long a statement waits for another process that is writing.
pub const SQLITE_BUSY_TIME_MAX: Duration = Duration::from_secs(5);
/// Pause between two tries to begin while another process writes.
pub const SQLITE_TURN_LOOK_GAP: Duration = Duration::from_millis(1);
/// Pause before a transaction while another process waits to write: some of its tries.
pub const SQLITE_TURN_GAP: Duration = Duration::from_millis(5);
/// Pause before a file that another process was making ready is opened again.
pub const SQLITE_OPEN_GAP: Duration = Duration::from_millis(10);
/// Pages of the write-ahead log that wait to be moved into the database: 16 MiB.
pub const CHECKPOINT_PAGES: i64 = 8_192;
/// Pages of the write-ahead log after which writers wait for it to be emptied: 128 MiB.
pub const JOURNAL_PAGES_MAX: i64 = 65_536;
/// Pause between looks at the write-ahead log while commits go on.
pub const CHECKPOINT_GAP: Duration = Duration::from_millis(50);
/// How long writers wait for readers when the write-ahead log is to be emptied.
pub const CHECKPOINT_BUSY_TIME_MAX: Duration = Duration::from_millis(20);
/// Pause after that was in vain.
pub const CHECKPOINT_BUSY_GAP: Duration = Duration::from_secs(1);

/// Connections of one process for writing to MySQL or MariaDB. A server takes 151 of all processes
/// together unless it is told otherwise.
pub const MYSQL_WRITERS_MAX: u32 = 12;
/// Connections of one process for reading from it.
pub const MYSQL_READERS_MAX: u32 = 8;
/// How long one may wait for a connection to become free.
pub const MYSQL_ACQUIRE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long making a connection may take.
pub const MYSQL_CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long one statement may take; after that the server counts as lost.
pub const MYSQL_STATEMENT_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of the arguments of one statement on an encrypted connection, unless one row has more.
pub const MYSQL_ENCRYPTED_STATEMENT_BYTES_MAX: usize = 14 * 1024;
/// How long a statement waits for a row that another transaction has locked. Less than [`LEDGER_RETRY_TIME_MAX`], so
/// that a command that has waited in vain is tried once more.
pub const MYSQL_LOCK_TIME_MAX: Duration = Duration::from_secs(4);
/// Time after which a connection that nobody used is not used again.
pub const MYSQL_IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// Time after which the server closes a silent connection, and rolls back what a frozen client had begun.
pub const MYSQL_SILENCE_TIME_MAX: Duration = Duration::from_secs(120);
/// How long one process waits for another that is migrating the same database.
pub const MYSQL_MIGRATION_TIME_MAX: Duration = Duration::from_secs(600);

/// Time one question to Kafka's brokers may take.
pub const KAFKA_REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest pause of a client of Kafka's before it tries again to connect to a broker; some jitter is added.
pub const KAFKA_RECONNECT_GAP_MAX: Duration = Duration::from_secs(1);
/// Bytes of key, value and headers of one record, as brokers take them by default.
pub const KAFKA_RECORD_BYTES_MAX: usize = 1_048_000;
/// Bytes of one batch of records, before a topic is found to take smaller ones only.
pub const KAFKA_BATCH_BYTES_MAX: usize = 500_000;
/// Bytes of records that wait in the client of the relay's producer.
pub const KAFKA_QUEUE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Time the records of one transaction may take to be acknowledged, and its commit again.
pub const KAFKA_COMMIT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time that the end of a transaction is given to reach all partitions before the next one begins.
pub const KAFKA_MARKERS_TIME: Duration = Duration::from_millis(2);
/// Time after which a broker ends a transaction that a dead relay left open.
pub const KAFKA_TRANSACTION_TIME_MAX: Duration = Duration::from_secs(30);
/// Topics that a writer keeps in mind as being there.
pub const KAFKA_TOPICS_KNOWN_MAX: usize = 1_000;
/// Looks for a topic before it counts as missing.
pub const KAFKA_TOPIC_LOOKS_MAX: u32 = 10;
/// Pause between two such looks: a broker that makes a topic needs some.
pub const KAFKA_TOPIC_LOOK_GAP: Duration = Duration::from_millis(100);
/// Time the topic of checkpoints may take to be read.
pub const KAFKA_CHECKPOINT_READ_TIME_MAX: Duration = Duration::from_secs(60);

/// Keys that the relay parks behind dead letters before it stops.
pub const RELAY_PARKED_KEYS_MAX: usize = 10_000;
/// Bytes of these keys: they are part of every checkpoint.
pub const RELAY_PARKED_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a dead letter. One that is larger keeps only the beginnings of its columns.
pub const DEAD_LETTER_BYTES_MAX: usize = 900_000;
/// Bytes of one column or value that a dead letter keeps.
pub const DEAD_LETTER_TEXT_BYTES_MAX: usize = 128 * 1024;

/// Ranges of outbox rows a checkpoint of the relay names as not yet come.
pub const RELAY_GAPS_MAX: usize = 256;
/// Age at which such a range is taken for rolled back: no transaction is open so long.
pub const RELAY_GAP_AGE_MAX: Duration = Duration::from_secs(3_600);
/// How exactly that age is known. There are far fewer of these in it than ranges.
pub const RELAY_GAP_SAMPLE_GAP: Duration = Duration::from_secs(60);
/// Rows of the outbox that are counted to tell how far the relay is behind; more are estimated from these.
pub const RELAY_BEHIND_ROWS_COUNTED: i64 = 10_000;
/// Silence after which Kafka gives a process's partitions to others. Brokers allow 6 s at least.
pub const KAFKA_SESSION_TIME_MAX: Duration = Duration::from_secs(6);
/// Time that reading positions may take while partitions are assigned: the others of the group wait meanwhile.
pub const KAFKA_POSITIONS_TIME_MAX: Duration = Duration::from_secs(2);
/// Time in which each process has to take part in a new division of the partitions; the others then go on without it.
pub const KAFKA_REBALANCE_TIME_MAX: Duration = Duration::from_secs(30);
/// KiB that are fetched ahead for one partition.
pub const KAFKA_QUEUE_KIB_MAX: u32 = 4_096;
/// KiB that are fetched ahead, for each partition, by whoever reads topics once more.
pub const KAFKA_SCAN_KIB_MAX: u32 = 4_096;
/// Events after which a projector's position is told to Kafka again, as a hint for tools.
pub const KAFKA_HINT_EVENTS_MIN: i64 = 1_000;
/// Records of one batch of the relay.
pub const RELAY_BATCH_RECORDS_MAX: usize = 8_192;
/// Bytes of the records of one batch of the relay. Two batches exist at a time: one is being written,
/// one is being made.
pub const RELAY_BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Times that a source may say that an outbox table has no columns before it is taken to be gone.
pub const RELAY_DEFINITION_LOOKS_MAX: u32 = 5;
/// Pause between two of them.
pub const RELAY_DEFINITION_LOOK_GAP: Duration = Duration::from_millis(200);
/// Time for which a batch gathers what can be had at once, before it is handed over to a sink that waits.
pub const RELAY_GATHER_TIME_MAX: Duration = Duration::from_millis(2);
/// Batches of one transaction of Kafka, while the relay catches up.
pub const RELAY_TRANSACTION_BATCHES_MAX: usize = 32;
/// Time after which such a transaction ends.
pub const RELAY_TRANSACTION_TIME_MAX: Duration = Duration::from_millis(500);
/// How long such a transaction waits for its next batch.
pub const RELAY_TRANSACTION_WAIT_MAX: Duration = Duration::from_millis(20);
/// Pause between two checkpoints while the outbox is quiet and the rest of the database is not.
pub const RELAY_QUIET_CHECKPOINT_GAP: Duration = Duration::from_secs(1);
/// Prepared transactions (XA) with outbox rows that may wait for their verdict.
pub const RELAY_PREPARED_MAX: usize = 256;
/// Rows of an outbox table, the last ones, among which a relay that begins with the latest looks for numbers that
/// lack.
pub const RELAY_SKIPPED_ROWS_READ: u64 = 10_000;
/// Pause between two times that outbox tables are read because of what the binlog does not tell.
pub const RELAY_TABLE_LOOK_GAP: Duration = Duration::from_secs(1);
/// Rows that are read from an outbox table at once where the binlog does not hold them.
pub const RELAY_RECOVERY_PAGE_ROWS: u64 = 1_000;
/// Bytes of a compressed transaction once it is decompressed.
pub const RELAY_PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// Bytes of one packet of the source.
pub const RELAY_PACKET_BYTES_MAX: usize = 1 << 30;
/// Time a new connection to the source may take until it can be used.
pub const RELAY_CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Time one question to the source may take.
pub const RELAY_QUESTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Heartbeats of the source that may be missing before it counts as frozen.
pub const RELAY_HEARTBEATS_MISSED_MAX: u32 = 3;
/// Pause before the relay's first new try while the source or the sink is down; it doubles with each.
pub const RELAY_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest pause between such tries.
pub const RELAY_BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Pause between looks at a lease: of the holder, that it is still his; of the others, whether it is free.
pub const RELAY_LEASE_LOOK_GAP: Duration = Duration::from_secs(1);
/// Time after which the source takes the lease from a holder that is silent.
pub const RELAY_LEASE_TIME_MAX: Duration = Duration::from_secs(5);
/// Polling relays of one group.
pub const RELAY_POLLERS_MAX: u32 = 16;
/// Rows of one batch of a polling relay.
pub const RELAY_POLL_ROWS_MAX: u64 = 500;
/// Rows that a polling relay notes in one statement where no trigger has done so.
pub const RELAY_POLL_NOTE_ROWS: u64 = 10_000;
/// Rows of earlier batches that a checkpoint of a polling relay names beside those of the last one. They are
/// those of about a second, and matter if the trigger is lost in it.
pub const RELAY_POLL_SENT_ROWS_MAX: usize = 10_000;
/// Time after which a polling relay looks for new columns of an outbox.
pub const RELAY_POLL_COLUMNS_GAP: Duration = Duration::from_secs(10);
/// Pause between two looks of a polling relay while there is something to relay.
pub const RELAY_POLL_GAP_MIN: Duration = Duration::from_millis(20);
/// Longest pause while there is nothing; each look in vain doubles it.
pub const RELAY_POLL_GAP_MAX: Duration = Duration::from_millis(320);

/// Time one command to Redis may take.
pub const REDIS_COMMAND_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of key, value and headers of one record in a Redis stream.
pub const REDIS_RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a record that is sent to a webhook or written to the standard output.
pub const WEBHOOK_RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time one call of Redis for a cache may take. Without it an answer is only slower.
pub const REDIS_CALL_TIME_MAX: Duration = Duration::from_millis(150);
/// Such calls of a process that may be under way.
pub const REDIS_CALLS_MAX: usize = 512;
/// Pause before a process first looks whether Redis is back; it doubles with each look.
pub const REDIS_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest pause between such looks.
pub const REDIS_BACKOFF_MAX: Duration = Duration::from_secs(1);
