//! Rows that cannot be published as they are, and the keys that wait behind them.
//!
//! A dead letter goes to a topic of its own, with what is wrong and the row as far as it can be read.
//! Its key is parked: later rows of the key become dead letters too, behind it and in order, while other
//! keys flow. The checkpoint remembers the parked keys, so it is the same after a restart.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Record;
use crate::{
    Error, Result,
    limits::{DEAD_LETTER_BYTES_MAX, DEAD_LETTER_TEXT_BYTES_MAX, RELAY_PARKED_BYTES_MAX, RELAY_PARKED_KEYS_MAX},
};

/// A row, or a record made of it, that is kept for an operator.
///
/// As JSON, absent fields are left out. `row` has the columns by their names: numbers, texts as they
/// are, and `{"base64": ".."}` for bytes that are no UTF-8; a column too long to be kept ends in `…`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// What is wrong, or that an earlier row of its key is dead.
    pub reason: String,
    /// Database and table with a dot between them, or the topic of a record that the sink refused.
    pub origin: String,
    /// The unit of order, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Identity of the event, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Where the row stands in the binlog, if it came from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The columns of the row, or `value` and headers of a record.
    pub row: Map<String, Value>,
}

/// A place in a binlog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The transaction, as the server names it.
    pub gtid: String,
    /// The file of the binlog.
    pub file: String,
    /// Where in the file the event ends, in bytes.
    pub position: u64,
    /// When the statement began, by the server's clock, in seconds since the Unix epoch.
    pub event_seconds: u32,
}

impl DeadLetter {
    /// A record that the sink refused.
    pub fn of_record(record: &Record, reason: String) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut row = Map::new();
        for (name, value) in [("key", &record.key), ("value", &record.value)] {
            row.insert(name.to_owned(), value.as_ref().map_or(Value::Null, |bytes| readable(bytes)));
        }
        for (name, value) in &record.headers {
            let value = value.as_ref().map_or(Value::Null, |bytes| readable(bytes));
            row.insert(format!("header {name}"), value);
        }
        Self {
            reason,
            origin: record.topic.to_string(),
            key: text(&record.order_key),
            event_id: text(&record.event_id),
            source: None,
            row,
        }
    }

    /// The letter as a record: its key, and itself as JSON.
    ///
    /// # Errors
    /// Never in practice: it holds texts and JSON only.
    pub fn to_record(&self, topic: &Arc<str>) -> Result<Record> {
        let json = |letter: &Self| serde_json::to_vec(letter).map_err(Error::json("writing a dead letter"));
        let mut value = json(self)?;
        if value.len() > DEAD_LETTER_BYTES_MAX {
            let begun = self.row.iter().take(1_000).map(|(name, value)| (name.clone(), beginning(value)));
            value = json(&Self { row: begun.collect(), ..self.clone() })?;
        }
        Ok(Record {
            topic: topic.clone(),
            key: self.key.as_ref().map(|key| key.clone().into_bytes()),
            value: Some(value),
            event_id: self.event_id.as_deref().unwrap_or_default().into(),
            order_key: self.key.as_deref().unwrap_or_default().into(),
            ..Record::default()
        })
    }
}

/// The beginning of a column, for a row that is too large as a whole.
fn beginning(value: &Value) -> Value {
    match value.to_string() {
        text if text.len() <= 100 => value.clone(),
        text => format!("{}…", &text[..text.floor_char_boundary(100)]).into(),
    }
}

/// Bytes as JSON that a reader can make something of.
pub(super) fn readable(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(shortened(text).into_owned()),
        Err(_) => {
            let kept = &bytes[..bytes.len().min(DEAD_LETTER_TEXT_BYTES_MAX / 4 * 3)];
            let mut object = Map::new();
            object.insert("base64".to_owned(), STANDARD.encode(kept).into());
            if kept.len() < bytes.len() {
                object.insert("bytes".to_owned(), bytes.len().into());
            }
            Value::Object(object)
        }
    }
}

/// A text that leaves room for others in the letter.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= DEAD_LETTER_TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(DEAD_LETTER_TEXT_BYTES_MAX);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// The keys whose rows are no longer published, because an earlier one is a dead letter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Parked {
    keys: BTreeSet<String>,
    bytes: usize,
    /// Those that were parked since the mark.
    since_mark: Vec<String>,
}

impl PartialEq for Parked {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

impl Parked {
    /// Whether no key is parked, which is nearly always so.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys are parked.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Whether a key is parked.
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Parks a key. An empty one is none: there is nothing that could wait behind it.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] when there are too many: something is wrong with the table or the
    /// configuration then, and the relay stops before all of it is dead.
    pub fn park(&mut self, key: &str) -> Result<()> {
        if key.is_empty() || self.keys.contains(key) {
            return Ok(());
        }
        let exceeded = |what, limit| Err(Error::LimitExceeded { what, limit });
        if self.keys.len() >= RELAY_PARKED_KEYS_MAX {
            return exceeded("the number of keys the relay has parked", RELAY_PARKED_KEYS_MAX);
        }
        if self.bytes + key.len() > RELAY_PARKED_BYTES_MAX {
            return exceeded("bytes of keys the relay has parked", RELAY_PARKED_BYTES_MAX);
        }
        self.restore([key.to_owned()]);
        Ok(())
    }

    /// Sets the mark.
    pub(super) fn mark(&mut self) {
        self.since_mark.clear();
    }

    /// Takes the keys out that were parked since the mark.
    pub(super) fn take_back(&mut self) -> Vec<String> {
        let keys = std::mem::take(&mut self.since_mark);
        for key in &keys {
            self.release(key);
        }
        keys
    }

    /// Parks keys again that were taken out.
    pub(super) fn restore(&mut self, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            self.bytes += key.len();
            self.keys.insert(key.clone());
            self.since_mark.push(key);
        }
    }

    /// Parks these keys in another set too.
    ///
    /// # Errors
    /// As [`Parked::park`].
    pub(super) fn add_to(&self, others: &mut Self) -> Result<()> {
        self.keys.iter().try_for_each(|key| others.park(key))
    }

    /// Lets the rows of a key flow again, from the next one on. Answers whether it was parked.
    pub fn release(&mut self, key: &str) -> bool {
        let was_parked = self.keys.remove(key);
        if was_parked {
            self.bytes -= key.len();
        }
        was_parked
    }
}

impl From<Vec<String>> for Parked {
    fn from(keys: Vec<String>) -> Self {
        let bytes = keys.iter().map(String::len).sum();
        Self { bytes, keys: keys.into_iter().collect(), since_mark: Vec::new() }
    }
}

impl From<Parked> for Vec<String> {
    fn from(parked: Parked) -> Self {
        parked.keys.into_iter().collect()
    }
}

/// Sets a record aside that the sink refused, and with it those behind it of the same key; the key is
/// parked. Their letters go before those that are in `dead` already, which come from later rows.
///
/// # Errors
/// When too many keys are parked, see [`Parked::park`].
pub fn set_aside(
    records: &mut Vec<Record>,
    refused: usize,
    reason: String,
    parked: &mut Parked,
    dead: &mut Vec<DeadLetter>,
) -> Result<()> {
    let Some(first) = records.get(refused) else { return Ok(()) };
    let key = first.order_key.clone();
    parked.park(&key)?;
    let mut letters = vec![DeadLetter::of_record(first, reason)];
    let behind = |record: &Record| !key.is_empty() && record.order_key == key;
    let waiting = records[refused + 1..].iter().filter(|record| behind(record));
    letters.extend(waiting.map(|record| DeadLetter::of_record(record, WAITS.to_owned())));
    let mut index = 0;
    records.retain(|record| {
        index += 1;
        index - 1 < refused || (index - 1 > refused && !behind(record))
    });
    dead.splice(..0, letters);
    Ok(())
}

/// The reason of a letter that nothing is wrong with.
pub(super) const WAITS: &str = "an earlier row of this key is a dead letter";

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, id: &str) -> Record {
        Record { order_key: key.into(), event_id: id.into(), value: Some(b"{}".to_vec()), ..Record::default() }
    }

    #[test]
    fn what_stands_behind_a_refused_record_waits_and_other_keys_flow() {
        let mut records =
            vec![record("a", "1"), record("b", "2"), record("a", "3"), record("b", "4"), record("c", "5")];
        let mut parked = Parked::default();
        let mut dead = vec![DeadLetter { event_id: Some("6".to_owned()), ..DeadLetter::default() }];
        set_aside(&mut records, 1, "too large".to_owned(), &mut parked, &mut dead).unwrap();
        let left: Vec<&str> = records.iter().map(|record| &*record.event_id).collect();
        assert_eq!(left, ["1", "3", "5"]);
        let dead: Vec<_> = dead.iter().map(|letter| letter.event_id.as_deref().unwrap()).collect();
        assert_eq!(dead, ["2", "4", "6"]);
        assert!(parked.contains("b") && parked.len() == 1);
    }

    #[test]
    fn a_record_without_a_key_is_set_aside_alone() {
        let mut records = vec![record("", "1"), record("", "2")];
        let (mut parked, mut dead) = (Parked::default(), Vec::new());
        set_aside(&mut records, 0, "too large".to_owned(), &mut parked, &mut dead).unwrap();
        assert_eq!((records.len(), dead.len(), parked.is_empty()), (1, 1, true));
    }

    #[test]
    fn too_many_parked_keys_stop_the_relay() {
        let mut parked = Parked::default();
        (0..RELAY_PARKED_KEYS_MAX).for_each(|key| parked.park(&key.to_string()).unwrap());
        parked.park("0").unwrap();
        assert!(matches!(parked.park("one more"), Err(Error::LimitExceeded { .. })));
        assert!(parked.release("0") && !parked.release("0"));
        parked.park("one more").unwrap();
        let mut parked = Parked::default();
        parked.park(&"k".repeat(RELAY_PARKED_BYTES_MAX)).unwrap();
        assert!(matches!(parked.park("k"), Err(Error::LimitExceeded { .. })));
    }

    #[test]
    fn letters_are_readable_and_never_too_large() {
        let record = Record {
            topic: "shop.orders".into(),
            key: Some(vec![0xff, 0]),
            value: Some("é".repeat(2 * DEAD_LETTER_TEXT_BYTES_MAX).into_bytes()),
            headers: vec![("none".into(), None)],
            ..record("k", "7")
        };
        let letter = DeadLetter::of_record(&record, "too large".to_owned());
        let written = letter.to_record(&"dead".into()).unwrap();
        assert!(written.bytes() < 2 * DEAD_LETTER_TEXT_BYTES_MAX);
        let read: DeadLetter = serde_json::from_slice(&written.value.unwrap()).unwrap();
        assert_eq!(read, letter);
        assert_eq!(read.row["key"]["base64"], "/wA=");
        let wide = (0..100).map(|column| (column.to_string(), letter.row["value"].clone())).collect();
        let written = DeadLetter { row: wide, ..letter.clone() }.to_record(&"dead".into()).unwrap();
        assert!(written.bytes() <= DEAD_LETTER_BYTES_MAX);
        assert!(read.row["value"].as_str().unwrap().ends_with("é…") && read.row["header none"].is_null());
    }
}
