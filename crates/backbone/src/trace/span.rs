//! What is told of one step.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use super::{Context, SpanId, send};
use crate::clock::moment;

/// A step that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// What was done: a template or a stage, never an identity.
    pub name: Cow<'static, str>,
    /// Its identity.
    pub context: Context,
    /// The step that it is a part of.
    pub parent: Option<SpanId>,
    /// Whether that step was made by another process, for all that is known.
    pub is_parent_remote: bool,
    /// Its part in what went on.
    pub kind: Kind,
    /// When it began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// What it was about.
    pub attributes: Vec<(&'static str, Value)>,
    /// Other spans that it has to do with.
    pub links: Vec<Context>,
    /// Links that were left out because there were too many.
    pub links_left_out: usize,
    /// What went wrong.
    pub error: Option<Cow<'static, str>>,
}

/// The part of a step in what went on, as OpenTelemetry names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It answered a request.
    Server,
    /// It happened inside.
    Internal,
    /// It gave something to a log.
    Producer,
    /// It took something out of a log.
    Consumer,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A text that is shared.
    Shared(Arc<str>),
    /// A whole number.
    Int(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A step that goes on. Dropped without an end, it is not told.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    context: Context,
    parent: Option<SpanId>,
    is_parent_remote: bool,
    start: SystemTime,
}

impl Begun {
    /// A step that begins now: a part of `parent`, or the first of a trace.
    pub fn now(parent: Option<Context>) -> Self {
        Self::at(parent, moment())
    }

    /// A step that began at `start`.
    pub(super) fn at(parent: Option<Context>, start: SystemTime) -> Self {
        let context = parent.map_or_else(Context::root, Context::child);
        Self { context, parent: parent.map(|parent| parent.span_id), is_parent_remote: false, start }
    }

    /// The first of a trace, begun now.
    pub(super) fn first(context: Context) -> Self {
        Self { context, parent: None, is_parent_remote: false, start: moment() }
    }

    /// The same, a part of what another process does.
    #[must_use]
    pub fn remote(self) -> Self {
        Self { is_parent_remote: self.parent.is_some(), ..self }
    }

    /// Its identity, for its parts.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Whether it is a part of what another process does.
    pub fn is_remote(&self) -> bool {
        self.is_parent_remote
    }

    /// The step ends now.
    pub fn end(self, name: impl Into<Cow<'static, str>>, kind: Kind) -> Ended {
        let Self { context, parent, is_parent_remote, start } = self;
        Ended(Span {
            name: name.into(),
            context,
            parent,
            is_parent_remote,
            kind,
            start,
            end: moment(),
            attributes: Vec::new(),
            links: Vec::new(),
            links_left_out: 0,
            error: None,
        })
    }
}

/// A step that has ended, before it is told.
#[derive(Debug)]
pub struct Ended(Span);

impl Ended {
    /// Says what it was about.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.attributes.push((name, value.into()));
        self
    }

    /// Says what went wrong, if anything did.
    #[must_use]
    pub fn failed(mut self, error: Option<impl Into<Cow<'static, str>>>) -> Self {
        self.0.error = error.map(Into::into);
        self
    }

    /// Says what else it has to do with.
    #[must_use]
    pub(super) fn linked(mut self, (links, left_out): (Vec<Context>, usize)) -> Self {
        (self.0.links, self.0.links_left_out) = (links, left_out);
        self
    }

    /// Another end than now.
    #[must_use]
    pub(super) fn ended_at(mut self, end: SystemTime) -> Self {
        self.0.end = end;
        self
    }

    /// Tells of it.
    pub fn tell(self) {
        send(self.0);
    }
}
