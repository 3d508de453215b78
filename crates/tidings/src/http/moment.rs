//! Times in answers: RFC 3339, UTC, milliseconds.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use tidings_event::Timestamp;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

/// A time in an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(pub(super) Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339, UTC, milliseconds"))
            .examples(["2026-11-29T15:26:17.123Z"])
            .into()
    }
}

impl ToSchema for Moment {
    fn name() -> Cow<'static, str> {
        "Moment".into()
    }
}
