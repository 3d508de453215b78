//! Who did what, when and why: each action of an operator leaves a record, written in the transaction of the
//! action itself, so that there is neither one without the other.

use tidings_event::Timestamp;

use crate::{
    Conn, Result,
    counted::{self, Counted},
    db::{Row, Value},
    limits::{AUDIT_REASON_BYTES_MAX, EVENT_TEXT_BYTES_MAX},
};

/// Who acts: the subject of a token, or `cli:` and the user of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// Somebody of this name; what is longer than the column is cut off.
    pub fn new(name: &str) -> Self {
        Self(first_bytes(name, EVENT_TEXT_BYTES_MAX).to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why somebody acts, in his own words: 1 to [`AUDIT_REASON_BYTES_MAX`] bytes, not only blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

/// The text is no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reason has 1 to {AUDIT_REASON_BYTES_MAX} bytes")]
pub struct InvalidReason;

impl std::str::FromStr for Reason {
    type Err = InvalidReason;

    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        let text = text.trim();
        if (1..=AUDIT_REASON_BYTES_MAX).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(InvalidReason) }
    }
}

impl Reason {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is to be written of an action.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// What was done, in a word or two with dots: `parking.redrive`.
    pub action: &'static str,
    /// To which projector, if to one.
    pub projector: Option<&'a str>,
    /// To which key, if to one.
    pub key: Option<&'a str>,
    /// To which event, if to one.
    pub event_id: Option<&'a str>,
    /// Why.
    pub reason: Option<&'a Reason>,
    /// What else there is to know, as a JSON object.
    pub details: String,
}

/// What operators can do, by the names that the audit has for it.
pub(crate) const ACTIONS: [&str; 10] = [
    "parking.redrive",
    "parking.discard",
    "projector.forget",
    "rebuild.start",
    "rebuild.pause",
    "rebuild.resume",
    "rebuild.switch",
    "rebuild.cancel",
    "reconcile.repair",
    "reconcile.repaired",
];

/// Writes what was done, on the transaction that does it, and counts it.
pub async fn write(conn: &mut Conn<'_>, entry: &Entry<'_>, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO audit (created_at, actor, action, projector, event_key, event_id, reason, details) \
               VALUES (?,?,?,?,?,?,?,?)";
    let args: Vec<Value> = vec![
        at.0.into(),
        entry.actor.as_str().into(),
        entry.action.into(),
        entry.projector.into(),
        entry.key.into(),
        entry.event_id.into(),
        entry.reason.map(Reason::as_str).into(),
        entry.details.as_str().into(),
    ];
    conn.execute("writing the audit", sql, args).await?;
    counted::add(conn, Counted::Actions, entry.action, 1).await
}

/// What was written of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Rises with each record.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To which projector.
    pub projector: Option<String>,
    /// To which key.
    pub key: Option<String>,
    /// To which event.
    pub event_id: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What else there is to know, as a JSON object.
    pub details: String,
}

/// The last records, the newest first, at most `limit`; `before` is the id of the last one had before.
pub async fn list(mut conn: Conn<'_>, before: Option<i64>, limit: usize) -> Result<Vec<Record>> {
    let sql = "SELECT id, created_at, actor, action, projector, event_key, event_id, reason, details \
               FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let args = vec![before.unwrap_or(i64::MAX).into(), limit.into()];
    conn.fetch("reading the audit", sql, args).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Record> {
    Ok(Record {
        id: row.int(0)?,
        at: Timestamp(row.int(1)?),
        actor: row.text(2)?,
        action: row.text(3)?,
        projector: row.text_or_null(4)?,
        key: row.text_or_null(5)?,
        event_id: row.text_or_null(6)?,
        reason: row.text_or_null(7)?,
        details: row.text(8)?,
    })
}

/// The beginning of a text, of at most so many bytes.
pub(crate) fn first_bytes(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_something_and_not_too_much() {
        assert_eq!(" poison ".parse::<Reason>().unwrap().as_str(), "poison");
        for wrong in ["", "  \n", &"x".repeat(AUDIT_REASON_BYTES_MAX + 1)] {
            assert!(wrong.parse::<Reason>().is_err());
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(Actor::new(&"é".repeat(200)).as_str().len(), 254);
        assert_eq!(Actor::new("cli:ada").as_str(), "cli:ada");
    }
}
