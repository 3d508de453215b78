//! The one error of this crate.

pub(crate) mod mysql;

use rdkafka::types::RDKafkaErrorCode as Code;

/// What went wrong, with its cause kept as [`std::error::Error::source`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused or could not be reached.
    #[error("the database failed while {doing}")]
    Database {
        /// What was being done, as a participle: "reading the outbox".
        doing: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// The connection ended before the answer to a commit came: what the transaction did is there as
    /// a whole, or not at all. Whoever decides anew looks at what is stored first.
    #[error("the connection ended during a commit, so it is not known whether it was made")]
    CommitUnknown {
        /// What the driver said.
        source: sqlx::Error,
    },
    /// A migration could not be applied.
    #[error("the database could not be migrated")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// A row does not hold what this version of the code wrote there.
    #[error("a row of `{table}` is malformed: {reason}")]
    MalformedRow {
        /// The table the row is in.
        table: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// JSON could not be written or read back.
    #[error("JSON failed while {doing}")]
    Json {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the JSON library said.
        source: serde_json::Error,
    },
    /// An event could not be written to or read from its stored form.
    #[error("an event could not be encoded or decoded")]
    Event(#[source] tidings_event::Error),
    /// Another process moved the position of this projector meanwhile; nothing was written.
    #[error("the position of projector `{projector}` was moved by somebody else")]
    PositionMoved {
        /// The projector whose position moved.
        projector: String,
    },
    /// A parked key was freed by somebody else while events were being appended behind it; nothing was written.
    #[error("a parked key of projector `{projector}` was freed by somebody else")]
    KeyFreed {
        /// The projector whose key it is.
        projector: &'static str,
    },
    /// A run of the reconciliation, or a repair, cannot be begun.
    #[error("the reconciliation was refused")]
    Reconcile(#[source] crate::reconcile::Refusal),
    /// The log no longer holds the events the projector would need next.
    #[error("projector `{projector}` needs offset {needed}, but the log starts at {earliest}")]
    HistoryMissing {
        /// The projector that cannot go on.
        projector: String,
        /// The first offset it has not seen.
        needed: i64,
        /// The first offset the log still holds.
        earliest: i64,
    },
    /// A rebuild is not done as an operator wishes.
    #[error("projector `{projector}`: {refusal}")]
    Rebuild {
        /// The projector.
        projector: String,
        /// Why.
        refusal: crate::projector::rebuild::Refusal,
    },
    /// An event was not found in what is looked through of the log, and there is more: whether it is there is not
    /// known.
    #[error("the event was not found in what is looked through of the log, and there is more of it")]
    SearchGaveUp,
    /// The log is being looked through for others.
    #[error("the log is being looked through for other events")]
    SearchBusy,
    /// A generation of a projector is no longer kept: readers are given another one.
    #[error("generation {generation} of projector `{projector}` is not kept any more")]
    GenerationGone {
        /// The projector.
        projector: &'static str,
        /// The generation that was to be kept.
        generation: i64,
    },
    /// The lock file that says which process runs a projector could not be used.
    #[error("the lock file {} could not be used", path.display())]
    Lease {
        /// The lock file.
        path: std::path::PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Kafka refused or could not be reached.
    #[error("Kafka failed while {doing}")]
    Kafka {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the client said.
        source: rdkafka::error::KafkaError,
    },
    /// Kafka would not make a topic.
    #[error("Kafka does not make the topic `{topic}`")]
    TopicRefused {
        /// The topic.
        topic: String,
        /// What the broker said.
        #[source]
        code: Code,
    },
    /// A topic that records go to is not there, and the brokers make none by themselves.
    #[error(
        "the topic `{topic}` is not there: make it, or name it in `topics` of the relay's sink, which makes those at \
         its start"
    )]
    TopicMissing {
        /// The topic.
        topic: String,
    },
    /// A topic has another number of partitions than configured, so keys would change their place.
    #[error("the topic `{topic}` has {found} partitions, {wanted} are configured")]
    TopicPartitions {
        /// The topic.
        topic: String,
        /// Partitions it has.
        found: i32,
        /// Partitions it should have.
        wanted: i32,
    },
    /// The database that the relay reads refused or could not be reached.
    #[error("the relay's source failed while {doing}")]
    Source {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the client said.
        source: mysql_async::Error,
    },
    /// The database that the relay reads did not say anything in time: it is frozen, or out of reach.
    #[error("the relay's source was silent for {} ms", time.as_millis())]
    SourceSilent {
        /// The time it was given.
        time: std::time::Duration,
    },
    /// The database ended the binlog's stream without an error, as it does when it shuts down.
    #[error("the relay's source ended the stream of its binlog")]
    SourceEnded,
    /// The database that the relay reads is set up in a way that cannot work.
    #[error("the relay's source must be set up first: {}", changes.join("; "))]
    SourceSettings {
        /// What to change, one sentence for each, with the statement that does it.
        changes: Vec<String>,
    },
    /// The database that the relay reads does not let it in, and never has since its start. Later the same is waited
    /// out: a server that takes another's place may not know the account yet.
    #[error("the relay is not let into its source: check user, password and database of its address")]
    SourceDenied(#[source] Box<Error>),
    /// Bytes of the binlog could not be read.
    #[error("the binlog could not be read at {place}")]
    Binlog {
        /// File and offset, or the transaction.
        place: String,
        /// What is wrong with the bytes.
        source: tidings_binlog::Error,
    },
    /// The source does not give the binlog from where the relay stands.
    #[error("the source does not give its binlog from {position}")]
    BinlogRefused {
        /// Where the relay stands.
        position: String,
        /// Why, as far as its answer tells.
        refusal: crate::relay::Refusal,
        /// What the source answered.
        source: mysql_async::Error,
    },
    /// The relay cannot go on without somebody's decision.
    #[error("the relay has stopped: {reason}")]
    RelayStopped {
        /// Why, and what to do.
        reason: String,
    },
    /// The relay's sink will not be written to before somebody has changed something. What kind of error
    /// it was does not matter any more: the same one may pass by itself where it is met otherwise.
    #[error("the relay's sink takes no more")]
    SinkStopped(#[source] Box<Error>),
    /// Redis refused or could not be reached.
    #[error("Redis failed while {doing}")]
    Redis {
        /// What was being done, as a participle.
        doing: &'static str,
        /// What the client said.
        source: redis::RedisError,
    },
    /// A webhook could not be reached.
    #[error("the webhook could not be reached")]
    Webhook(#[source] reqwest::Error),
    /// A webhook did not take a record.
    #[error("the webhook answered {status}")]
    WebhookAnswer {
        /// The status of its answer.
        status: u16,
    },
    /// A file of the relay could not be read or written.
    #[error("the file {} could not be used", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Redis is down. It was said when it went down, and why.
    #[error("Redis is down")]
    RedisDown,
    /// A limit of this crate was exceeded; see [`crate::limits`].
    #[error("{what} exceeds its limit of {limit}")]
    LimitExceeded {
        /// What is too large.
        what: &'static str,
        /// The limit, in the unit `what` names.
        limit: usize,
    },
    /// One call of a projector took too long.
    #[error("a batch of {events} events was not applied within {} ms", time.as_millis())]
    ApplyTimedOut {
        /// Events of the batch.
        events: usize,
        /// The time it was given.
        time: std::time::Duration,
    },
    /// A feature's own code found its data impossible.
    #[error("{message}")]
    Invariant {
        /// What was found.
        message: String,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Another connection holds the file.
const SQLITE_BUSY: u32 = 5;

/// Primary SQLite result codes that say the database, not the statement, is in trouble:
/// BUSY, LOCKED, NOMEM, IOERR, FULL, CANTOPEN, PROTOCOL (sqlite.org/rescode.html).
const SQLITE_TRANSIENT_CODES: [u32; 7] = [SQLITE_BUSY, 6, 7, 10, 13, 14, 15];

/// Primary SQLite result codes that blame the values of a statement: TOOBIG, CONSTRAINT, MISMATCH.
const SQLITE_DATA_CODES: [u32; 3] = [18, 19, 20];

/// Codes of Kafka that come again until somebody changes a setting.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::TopicAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::UnsupportedSASLMechanism
            | Code::InvalidTopic
            | Code::InvalidTransactionTimeout
            | Code::InvalidReplicationFactor
            | Code::InvalidPartitions
            | Code::PolicyViolation
            | Code::UnsupportedFeature
    )
}

impl Error {
    pub(crate) fn database(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    pub(crate) fn kafka(doing: &'static str) -> impl FnOnce(rdkafka::error::KafkaError) -> Self {
        move |source| Self::Kafka { doing, source }
    }

    pub(crate) fn redis(doing: &'static str) -> impl FnOnce(redis::RedisError) -> Self {
        move |source| Self::Redis { doing, source }
    }

    pub(crate) fn json(doing: &'static str) -> impl FnOnce(serde_json::Error) -> Self {
        move |source| Self::Json { doing, source }
    }

    /// Whether the same call may succeed later without a change of its input: a dependency is
    /// down or busy. Told by code, never by message text.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database { source, .. } => is_transient(source),
            Self::CommitUnknown { .. } => true,
            Self::PositionMoved { .. }
            | Self::KeyFreed { .. }
            | Self::GenerationGone { .. }
            | Self::Lease { .. }
            | Self::ApplyTimedOut { .. } => true,
            Self::Kafka { .. } | Self::TopicRefused { .. } | Self::TopicMissing { .. } => true,
            Self::Source { .. } | Self::SourceSilent { .. } | Self::SourceEnded => true,
            Self::Redis { source, .. } => is_transient_in_redis(source),
            Self::Webhook(_) | Self::WebhookAnswer { .. } | Self::File { .. } => true,
            Self::RedisDown | Self::SearchBusy => true,
            _ => false,
        }
    }

    /// Whether Kafka forbids what was asked, or does not know it: only a change of its settings or of those
    /// here can help.
    pub(crate) fn is_forbidden_by_kafka(&self) -> bool {
        let code = match self {
            Self::Kafka { source, .. } => source.rdkafka_error_code(),
            Self::TopicRefused { code, .. } => Some(*code),
            _ => None,
        };
        code.is_some_and(is_refusal)
    }

    /// Whether the data itself is at fault: the same call will fail again whatever is repaired
    /// around it. Of what the database says, only that the values break a rule counts; a missing
    /// table, say, is nobody's data.
    pub fn is_fault_of_data(&self) -> bool {
        match self {
            Self::Database { source: sqlx::Error::Database(error), .. } => {
                sqlite_code(&**error).is_some_and(|code| SQLITE_DATA_CODES.contains(&code))
                    || mysql::code(&**error).is_some_and(mysql::is_fault_of_data)
            }
            Self::MalformedRow { .. } | Self::Json { .. } | Self::Event(_) | Self::LimitExceeded { .. } => true,
            _ => false,
        }
    }

    /// Whether it is open if a transaction was committed.
    pub fn is_commit_unknown(&self) -> bool {
        matches!(self, Self::CommitUnknown { .. })
    }

    /// Whether another writer stored the same unique value between the look and the write: the same
    /// call, made anew, will find it. On SQLite nobody can: one writer at a time works.
    pub fn is_lost_race(&self) -> bool {
        match self {
            Self::Database { source: sqlx::Error::Database(error), .. } => {
                mysql::code(&**error).is_some_and(mysql::is_duplicate)
            }
            _ => false,
        }
    }

    /// Whether another connection holds SQLite's file.
    pub(crate) fn is_busy_in_sqlite(&self) -> bool {
        match self {
            Self::Database { source: sqlx::Error::Database(error), .. } => sqlite_code(&**error) == Some(SQLITE_BUSY),
            _ => false,
        }
    }

    /// Whether another transaction holds a row that was asked for.
    pub(crate) fn is_locked(&self) -> bool {
        match self {
            Self::Database { source: sqlx::Error::Database(error), .. } => {
                mysql::code(&**error).is_some_and(mysql::is_locked)
            }
            _ => false,
        }
    }

    /// The error and its causes, outermost first, in one line. The clients of databases put the text of a cause into
    /// their own and name it as their source too; it is said once.
    pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
        let mut last = error.to_string();
        let mut text = last.clone();
        let mut cause = error.source();
        while let Some(error) = cause {
            let next = error.to_string();
            if !last.contains(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            (last, cause) = (next, error.source());
        }
        text
    }
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(error) => {
            sqlite_code(&**error).is_some_and(|code| SQLITE_TRANSIENT_CODES.contains(&code))
                || mysql::code(&**error).is_some_and(mysql::is_transient)
        }
        _ => false,
    }
}

/// Of what Redis says, only what the configuration is to blame for stays as it is.
fn is_transient_in_redis(error: &redis::RedisError) -> bool {
    use redis::{ErrorKind, ServerErrorKind};
    let is_of_configuration = matches!(
        error.kind(),
        ErrorKind::InvalidClientConfig
            | ErrorKind::AuthenticationFailed
            | ErrorKind::Server(ServerErrorKind::CrossSlot | ServerErrorKind::NoPerm)
    );
    !is_of_configuration && error.code() != Some("WRONGTYPE")
}

/// The primary result code of an error of SQLite's; the engine's own, so other engines have none.
fn sqlite_code(error: &dyn sqlx::error::DatabaseError) -> Option<u32> {
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.code()?.parse::<u32>().ok().map(|code| code & 0xff)
}

/// What a caught panic says.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_says_the_text_of_a_database_once_though_its_client_says_it_twice() {
        let text = "Access denied for user 'relay'@'localhost'";
        let answer = mysql_async::ServerError { code: 1045, message: text.to_owned(), state: "28000".to_owned() };
        let source = mysql_async::Error::Server(answer);
        let error = Error::SourceDenied(Box::new(Error::Source { doing: "connecting", source }));
        let chain = Error::chain(&error);
        assert_eq!(chain.matches(text).count(), 1, "{chain}");
        assert!(chain.contains("not let into its source") && chain.contains("failed while connecting"), "{chain}");
    }
}
