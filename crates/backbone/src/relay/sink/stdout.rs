//! Records to the standard output, one JSON object a line, with the checkpoint in a file.
//!
//! ```json
//! {"topic":"shop.orders","partition":null,"key":"o-1","value":"{}","headers":{"id":"7"},"timestamp_ms":1795965977123}
//! ```
//!
//! Bytes that are no UTF-8 are `{"base64": ".."}`. Dead letters are lines of the topic
//! `relay-dead-letter`. Lines are flushed before the checkpoint moves, so after a crash some may come
//! again and none is missing.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use super::{
    WriteError,
    place::{Place, retriable},
};
use crate::{
    Error, Result,
    limits::WEBHOOK_RECORD_BYTES_MAX,
    relay::{DeadLetter, Record},
};

/// Where the checkpoint is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The file of the checkpoint. Files beside it, with further endings, are the relay's too.
    pub file: PathBuf,
}

/// Writes lines.
pub struct Sink {
    place: Place,
    output: Arc<Mutex<dyn Write + Send>>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Sink {
    /// A sink that writes lines to `output`, which is the standard output for whoever calls it so.
    pub fn open(file: &Path, output: impl Write + Send + 'static) -> Self {
        Self { place: Place::new(file), output: Arc::new(Mutex::new(output)) }
    }

    pub(super) fn take_over(&mut self) -> Result<Option<String>> {
        self.place.take_over()
    }

    pub(super) async fn write(
        &mut self,
        records: &[Record],
        dead: &[DeadLetter],
        checkpoint: &str,
    ) -> Result<(), WriteError> {
        if !self.place.is_held() {
            return Err(WriteError::Fenced);
        }
        let lines = lines(records, dead).map_err(WriteError::Fatal)?;
        let output = self.output.clone();
        // A reader that is slow blocks whoever writes to him.
        let written = tokio::task::spawn_blocking(move || {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.write_all(&lines)?;
            output.flush()
        });
        let written = written.await.unwrap_or_else(|ended| Err(std::io::Error::other(ended)));
        // Half a line may be out; whoever reads is gone or full, and trying again would not mend that.
        written.map_err(|source| WriteError::Fatal(Error::File { path: "standard output".into(), source }))?;
        self.place.store(checkpoint).map_err(retriable)
    }

    pub(super) fn record_bytes_max(&self) -> usize {
        WEBHOOK_RECORD_BYTES_MAX
    }
}

fn lines(records: &[Record], dead: &[DeadLetter]) -> Result<Vec<u8>> {
    let topic = Arc::from("relay-dead-letter");
    let mut lines = Vec::new();
    let mut add = |record: &Record| {
        serde_json::to_writer(&mut lines, &Line::of(record)).map_err(Error::json("writing a record as a line"))?;
        lines.push(b'\n');
        Ok(())
    };
    records.iter().try_for_each(&mut add)?;
    dead.iter().try_for_each(|letter| add(&letter.to_record(&topic)?))?;
    Ok(lines)
}

#[derive(Serialize)]
struct Line<'a> {
    topic: &'a str,
    partition: Option<i32>,
    key: Option<Bytes<'a>>,
    value: Option<Bytes<'a>>,
    headers: Headers<'a>,
    timestamp_ms: Option<i64>,
}

impl<'a> Line<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            topic: &record.topic,
            partition: record.partition,
            key: record.key.as_deref().map(Bytes),
            value: record.value.as_deref().map(Bytes),
            headers: Headers(&record.headers),
            timestamp_ms: record.timestamp_ms,
        }
    }
}

/// A text, or an object with Base64 for what is none.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut object = serializer.serialize_map(Some(1))?;
                object.serialize_entry("base64", &STANDARD.encode(self.0))?;
                object.end()
            }
        }
    }
}

struct Headers<'a>(&'a [(Arc<str>, Option<Vec<u8>>)]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&**name, value.as_deref().map(Bytes))))
    }
}
