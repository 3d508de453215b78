//! The wire formats, seen from outside.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod canal_reference;
mod canal_values;
mod cloudevents_rules;
mod consumers;
mod debezium_options;
mod debezium_reference;
mod metadata;
mod payloads;
mod properties;
mod refusals;
mod row_properties;
mod samples;
mod wire_shapes;
