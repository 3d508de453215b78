//! What projectors and relays log, caught for the tests that look at it.

use std::{
    fmt::Debug,
    sync::{Mutex, Once},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

/// The warnings and errors of one projector, or of the relays of one group. No other test may have one of the
/// same name.
pub(crate) struct Said(String);

/// A line, as far as tests look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The projector or the relay's group; for a shard of a polling relay the group with the shard's number.
    pub(crate) by: String,
    pub(crate) is_error: bool,
    pub(crate) text: String,
    /// How long it says that the speaker waits.
    pub(crate) pause_ms: Option<u128>,
    /// Why it is said.
    pub(crate) reason: String,
}

static CAUGHT: Mutex<(Vec<String>, Vec<Line>)> = Mutex::new((Vec::new(), Vec::new()));

impl Said {
    /// Begins to catch what is said by whoever has this name.
    pub(crate) fn by(name: &str) -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Catcher).unwrap());
        CAUGHT.lock().unwrap().0.push(name.to_owned());
        Self(name.to_owned())
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        CAUGHT.lock().unwrap().1.iter().filter(|line| is_of(&self.0, &line.by)).cloned().collect()
    }
}

/// Whether it is said by one of this name, or by a part of him, whose number stands behind a point.
fn is_of(name: &str, by: &str) -> bool {
    by.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whoever runs many tests in one process has one subscriber for all of them.
struct Catcher;

impl Subscriber for Catcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { is_error: *event.metadata().level() == Level::ERROR, ..Line::default() };
        event.record(&mut line);
        let (wanted, lines) = &mut *CAUGHT.lock().unwrap();
        if wanted.iter().any(|name| is_of(name, &line.by)) {
            lines.push(line);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "projector" | "group" => value.clone_into(&mut self.by),
            "reason" => value.clone_into(&mut self.reason),
            _ => {}
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        if field.name() == "pause_ms" {
            self.pause_ms = Some(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }
}
