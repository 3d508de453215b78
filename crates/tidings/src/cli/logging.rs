//! Log lines, to standard error.

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{LogFormat, Logging};

/// Installs the log for the process. One that is installed already stays.
pub(super) fn install(logging: &Logging) {
    let filter = EnvFilter::try_new(rules(&logging.level)).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = match logging.format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(error) = installed {
        tracing::debug!(%error, "the log is installed already");
    }
}

/// The client of Kafka tells every try to reach every broker, and so does, once for each pause, whoever waits
/// for it: only a rule that names the client lets it speak for itself.
fn rules(level: &str) -> String {
    if level.contains("rdkafka") { level.to_owned() } else { format!("{level},rdkafka=off,librdkafka=off") }
}
