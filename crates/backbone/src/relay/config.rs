//! A relay that runs alone, as its configuration describes it: any outbox, any sink.

use serde::Deserialize;

use super::{FirstStart, Formatter, Options, OutboxTable, Relay, Route, Sink, sink};
use crate::{Clock, Error, Result};

/// The configuration of a relay that runs alone, with nothing else of Tidings present.
///
/// Whatever it does not know is an error, so that a name that was written wrongly is not passed over.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The database: `mysql://user:password@host:port/database`.
    pub source: String,
    /// Relays of one group take turns: one is active, the others wait. The checkpoint is the group's.
    pub group: String,
    /// What `{prefix}` in the names of topics stands for: `tidings`.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// Where to begin when there is no checkpoint yet: `earliest`, with all rows that the tables hold, or
    /// `latest`, with what is committed from now on.
    #[serde(default)]
    pub first_start: FirstStart,
    /// How it learns what is committed: from the `binlog`, or by asking (`poll`) where that cannot be read.
    #[serde(default)]
    pub mode: Mode,
    /// The outbox tables: `database`, `name` and `columns` of each.
    pub tables: Vec<OutboxTable>,
    /// How rows become records, the first route that fits a row: all of them CloudEvents in JSON.
    #[serde(default = "routes")]
    pub routes: Vec<Route>,
    /// Where records go.
    pub sink: sink::Options,
}

/// How a relay learns what is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It reads the binlog.
    #[default]
    Binlog,
    /// It asks again and again.
    Poll,
}

fn prefix() -> String {
    "tidings".to_owned()
}

fn routes() -> Vec<Route> {
    vec![Route::default()]
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address of the source may hold a password.
        f.debug_struct("Config")
            .field("group", &self.group)
            .field("tables", &self.tables)
            .field("routes", &self.routes)
            .field("sink", &self.sink)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Puts the relay together. Nothing is connected yet.
    ///
    /// # Errors
    /// When the configuration has what cannot be; the error names it.
    pub fn relay(&self, clock: Clock) -> Result<Relay> {
        let wrong = |name: &str, rule| Error::Event(tidings_event::Error::Option { name: name.to_owned(), rule });
        if self.group.is_empty() {
            return Err(wrong("group", "must not be empty"));
        }
        if self.tables.is_empty() {
            return Err(wrong("tables", "must have one table at least"));
        }
        if self.routes.is_empty() {
            return Err(wrong("routes", "must have one route at least, or be absent"));
        }
        let sink = Sink::open(&self.sink, &self.group, &clock)?;
        let formatter = Formatter::new(&self.routes, &self.prefix, clock.clone(), sink.record_bytes_max())?;
        let mut options = Options::new(&self.source, &self.group);
        options.tables.clone_from(&self.tables);
        options.first_start = self.first_start;
        match self.mode {
            Mode::Binlog => Relay::new(options, formatter, sink, clock),
            Mode::Poll => Relay::polling(options, formatter, self.sink.clone(), clock),
        }
    }
}
