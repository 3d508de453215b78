//! Values and schemas as Kafka Connect has them.

use std::borrow::Cow;

/// A value of Connect.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f32),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Plain digits. In JSON they are the Base64 of the number without its point, as big-endian bytes.
    Decimal(Cow<'a, str>),
    Array(Vec<Self>),
    Struct(Vec<(Cow<'a, str>, Self)>),
}

impl Data<'_> {
    /// Whether the router takes a payload of this value as empty: Java's `toString().trim().isEmpty()`.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.chars().all(|letter| letter <= ' '),
            _ => false,
        }
    }
}

/// The type of a value of Connect, as the JSON converter writes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Schema {
    pub(super) kind: SchemaKind,
    pub(super) is_optional: bool,
    pub(super) name: Option<String>,
    pub(super) version: Option<i32>,
    pub(super) parameters: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum SchemaKind {
    /// A type without parts, in the words of JSON: `int32`, `string`, ...
    Simple(&'static str),
    Array(Box<Schema>),
    Struct(Vec<(String, Schema)>),
}

impl Schema {
    pub(super) fn optional(kind: SchemaKind) -> Self {
        Self { kind, is_optional: true, name: None, version: None, parameters: Vec::new() }
    }

    pub(super) fn simple(kind: &'static str) -> Self {
        Self::optional(SchemaKind::Simple(kind))
    }

    /// A logical type: a simple one with a name, in its first version.
    pub(super) fn logical(kind: &'static str, name: &str) -> Self {
        Self { name: Some(name.to_owned()), version: Some(1), ..Self::simple(kind) }
    }

    pub(super) fn with(mut self, parameter: &'static str, value: String) -> Self {
        self.parameters.push((parameter, value));
        self
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        matches!(self.kind, SchemaKind::Simple(own) if own == kind)
    }
}
