//! Records to Redis Streams, with the checkpoint in the same script.
//!
//! A record is one entry of the stream named by its topic, with the fields `key`, `value` (absent for a
//! tombstone), `id` (of the event) and `header:NAME` for each header that has a value; a partition that
//! a format has chosen is `partition`. Records and checkpoint are one script, which Redis runs and logs
//! as a whole: after a crash both are there or neither, however often Redis writes to disk.
//!
//! Redis Cluster would want all keys of a script in one place, so it is not a place for this sink.

use std::{collections::HashMap, sync::Arc};

use redis::{
    Client, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use serde::Deserialize;

use super::WriteError;
use crate::{
    Clock, Error, EventIds, Result,
    limits::{REDIS_COMMAND_TIME_MAX, REDIS_RECORD_BYTES_MAX},
    relay::{DeadLetter, Record},
};

/// Where Redis is, and how its streams are kept.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `redis://user:password@host:port/database`, or `rediss://` with TLS.
    pub url: String,
    /// What the names of the group's hash and of the stream of dead letters begin with: `tidings`.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// Entries that a stream keeps, about, the newest; 0, the default, keeps all.
    #[serde(default)]
    pub stream_entries_max: u64,
}

fn prefix() -> String {
    "tidings".to_owned()
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        let Self { url: _, prefix, stream_entries_max } = self;
        f.debug_struct("Options")
            .field("prefix", prefix)
            .field("stream_entries_max", stream_entries_max)
            .finish_non_exhaustive()
    }
}

/// Appends to Redis Streams.
pub struct Sink {
    options: Options,
    /// The hash of the group.
    state: String,
    dead_letters: Arc<str>,
    connection: ConnectionManager,
    take_over: Script,
    write: Script,
    /// Who writes, and the sequence of the last write; nothing where somebody else has taken over.
    owner: Option<(String, u64)>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("options", &self.options).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Sink {
    /// A sink for the relays of one group. Connects when it is first used.
    ///
    /// # Errors
    /// When the address is none.
    pub fn open(options: &Options, group: &str) -> Result<Self> {
        let connecting = || Error::redis("connecting to Redis");
        let client = Client::open(options.url.as_str()).map_err(connecting())?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(REDIS_COMMAND_TIME_MAX))
            .set_response_timeout(Some(REDIS_COMMAND_TIME_MAX))
            // The relay waits and tries again by itself.
            .set_number_of_retries(0);
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(client, config).map_err(connecting())?,
            state: format!("{}.relay-checkpoint.{group}", options.prefix),
            dead_letters: format!("{}.relay-dead-letter", options.prefix).into(),
            options: options.clone(),
            take_over: Script::new(include_str!("redis/take_over.lua")),
            write: Script::new(include_str!("redis/write.lua")),
            owner: None,
        })
    }

    pub(super) async fn take_over(&mut self) -> Result<Option<String>> {
        self.owner = None;
        let owner = EventIds::from_os().next(Clock::system().now()).to_string();
        let mut call = self.take_over.key(&self.state);
        let answer: Vec<String> = call
            .arg(&owner)
            .invoke_async(&mut self.connection)
            .await
            .map_err(Error::redis("taking over the relay's streams"))?;
        let mut answer = answer.into_iter();
        let (sequence, checkpoint) = (answer.next(), answer.next());
        let sequence = sequence.map_or(Ok(0), |text| {
            text.parse()
                .map_err(|_| Error::Invariant { message: format!("the hash `{}` is not a relay's", self.state) })
        });
        self.owner = Some((owner, sequence?));
        Ok(checkpoint)
    }

    pub(super) async fn write(
        &mut self,
        records: &[Record],
        dead: &[DeadLetter],
        checkpoint: &str,
    ) -> Result<(), WriteError> {
        if let Some(record) = records.iter().position(|record| record.bytes() > REDIS_RECORD_BYTES_MAX) {
            let reason = format!("the record has more than {REDIS_RECORD_BYTES_MAX} bytes");
            return Err(WriteError::Refused { record, reason });
        }
        let Some((owner, last)) = &mut self.owner else { return Err(WriteError::Fenced) };
        let letters = dead.iter().map(|letter| letter.to_record(&self.dead_letters));
        let letters: Vec<Record> = letters.collect::<Result<_>>().map_err(WriteError::Fatal)?;
        let mut call = self.write.key(&self.state);
        call.arg(&*owner).arg(*last + 1).arg(checkpoint).arg(self.options.stream_entries_max);
        let mut streams = Streams::default();
        for record in records.iter().chain(&letters) {
            if let Some(new) = streams.place(&record.topic) {
                call.key(new);
            }
            call.arg(streams.last);
            append(record, |texts| {
                call.arg(texts);
            });
        }
        let answer: Result<String, _> = call.invoke_async(&mut self.connection).await;
        match answer.map_err(Error::redis("appending to streams")) {
            Ok(answer) if answer == "fenced" => {
                self.owner = None;
                Err(WriteError::Fenced)
            }
            Ok(_) => {
                *last += 1;
                Ok(())
            }
            Err(error) if error.is_transient() => Err(WriteError::Retriable(error)),
            Err(error) => Err(WriteError::Fatal(error)),
        }
    }
}

/// The streams of one call, by their place among its keys.
#[derive(Default)]
struct Streams<'a> {
    places: HashMap<&'a str, usize>,
    /// The place of the stream that was asked for last.
    last: usize,
}

impl<'a> Streams<'a> {
    /// Finds the place of a stream. Answers its name where it has to be added to the keys.
    fn place(&mut self, name: &'a str) -> Option<&'a str> {
        // The first key is the hash, and Lua counts from 1.
        let next = self.places.len() + 2;
        self.last = *self.places.entry(name).or_insert(next);
        (self.last == next).then_some(name)
    }
}

/// The texts of one entry: how many there are, then names and values.
fn append(record: &Record, mut add: impl FnMut(&[u8])) {
    let partition = record.partition.map(|partition| partition.to_string());
    let mut fields: Vec<(String, &[u8])> = Vec::with_capacity(4 + record.headers.len());
    let id = (!record.event_id.is_empty()).then_some(record.event_id.as_bytes());
    let known = [
        ("key", record.key.as_deref()),
        ("value", record.value.as_deref()),
        ("id", id),
        ("partition", partition.as_deref().map(str::as_bytes)),
    ];
    fields.extend(known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let headers = record.headers.iter().filter_map(|(name, value)| Some((format!("header:{name}"), value.as_deref()?)));
    fields.extend(headers);
    if fields.is_empty() {
        // An entry has one field at least.
        fields.push(("id".to_owned(), b""));
    }
    add((2 * fields.len()).to_string().as_bytes());
    for (name, value) in fields {
        add(name.as_bytes());
        add(value);
    }
}
