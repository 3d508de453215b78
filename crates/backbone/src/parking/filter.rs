//! Choosing parked keys.

use tidings_event::Timestamp;

use super::State;
use crate::{Conn, Result, db::Value, projector::generation};

/// Which parked keys are meant: those that meet all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this projector: of the generation that readers are given, or of another one (`orders@3`).
    pub projector: Option<String>,
    /// This key. It may be parked in several parts of the log.
    pub key: Option<String>,
    /// The event at its head is of this type.
    pub event_type: Option<String>,
    /// Its last error contains this text, in the same letters.
    pub error: Option<String>,
    /// In this state.
    pub state: Option<State>,
    /// Parked at this time or later.
    pub parked_from: Option<Timestamp>,
    /// Parked before this time.
    pub parked_before: Option<Timestamp>,
}

impl Filter {
    /// One key of one projector.
    pub fn one(projector: &str, key: &str) -> Self {
        Self { projector: Some(projector.to_owned()), key: Some(key.to_owned()), ..Self::default() }
    }

    /// Whether every key is meant.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it names one key of one projector, and may ask for nothing else that could not be known before.
    pub(super) fn names_one(&self) -> bool {
        self.projector.is_some() && self.key.is_some()
    }

    /// The same with the projector as the lot knows it: by the identity of its live generation.
    pub(super) async fn meant(&self, conn: &mut Conn<'_>) -> Result<Self> {
        let projector = match &self.projector {
            Some(name) => Some(generation::meant(conn, name).await?),
            None => None,
        };
        Ok(Self { projector, ..self.clone() })
    }

    /// A condition on `parked_key k` with its head `parked_event h`, and its arguments.
    pub(super) fn condition(&self) -> (String, Vec<Value>) {
        let mut conditions = vec!["1 = 1"];
        let mut args: Vec<Value> = Vec::new();
        let texts = [
            ("k.projector = ?", &self.projector),
            ("k.event_key = ?", &self.key),
            ("h.event_type = ?", &self.event_type),
            // Told from the letters themselves by every engine, which LIKE is not.
            ("INSTR(k.error, ?) > 0", &self.error),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                conditions.push(condition);
                args.push(text.as_str().into());
            }
        }
        let numbers = [
            ("k.state = ?", self.state.map(State::code)),
            ("k.parked_at >= ?", self.parked_from.map(|at| at.0)),
            ("k.parked_at < ?", self.parked_before.map(|at| at.0)),
        ];
        for (condition, number) in numbers {
            if let Some(number) = number {
                conditions.push(condition);
                args.push(number.into());
            }
        }
        (conditions.join(" AND "), args)
    }

    /// It as JSON, with what it does not ask for left out.
    pub(super) fn as_json(&self) -> serde_json::Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string().into());
        let text = |text: &Option<String>| text.as_deref().map(Into::into);
        let given: [(&str, Option<serde_json::Value>); 7] = [
            ("projector", text(&self.projector)),
            ("key", text(&self.key)),
            ("event_type", text(&self.event_type)),
            ("error", text(&self.error)),
            ("state", self.state.map(|state| state.name().into())),
            ("parked_from", time(self.parked_from)),
            ("parked_before", time(self.parked_before)),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        serde_json::Value::Object(given.collect())
    }
}
