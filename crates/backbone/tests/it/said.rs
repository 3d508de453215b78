//! What projectors log, caught for the tests that look at it.

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

/// The warnings and errors of one projector. No other test may have one of the same name.
pub(crate) struct Said(&'static str);

/// A line, as far as tests look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    projector: String,
    pub(crate) text: String,
    /// How long it says that the projector waits.
    pub(crate) pause_ms: Option<u128>,
}

static CAUGHT: Mutex<(Vec<&str>, Vec<Line>)> = Mutex::new((Vec::new(), Vec::new()));

impl Said {
    /// Begins to catch what the projector of this name says.
    pub(crate) fn by(projector: &'static str) -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Catcher).unwrap());
        CAUGHT.lock().unwrap().0.push(projector);
        Self(projector)
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        CAUGHT.lock().unwrap().1.iter().filter(|line| line.projector == self.0).cloned().collect()
    }
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
        let mut line = Line::default();
        event.record(&mut line);
        let (wanted, lines) = &mut *CAUGHT.lock().unwrap();
        if wanted.contains(&line.projector.as_str()) {
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
        if field.name() == "projector" {
            value.clone_into(&mut self.projector);
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
