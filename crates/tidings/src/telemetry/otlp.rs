//! A span, as OpenTelemetry has it.

use std::sync::LazyLock;

use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, StringValue, TraceFlags, TraceId, Value as OtlpValue,
    trace::{Link, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tidings_backbone::trace::{Context, Kind, Span, Value};

/// The name under which spans are told.
static SCOPE: LazyLock<InstrumentationScope> =
    LazyLock::new(|| InstrumentationScope::builder("tidings").with_version(env!("CARGO_PKG_VERSION")).build());

pub(super) fn span(span: Span) -> SpanData {
    let mut links = SpanLinks::default();
    links.links = span.links.into_iter().map(|linked| Link::with_context(context(linked, true))).collect();
    links.dropped_count = span.links_left_out.try_into().unwrap_or(u32::MAX);
    SpanData {
        span_context: context(span.context, false),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.to_bytes())),
        parent_span_is_remote: span.is_parent_remote,
        span_kind: match span.kind {
            Kind::Server => SpanKind::Server,
            Kind::Internal => SpanKind::Internal,
            Kind::Producer => SpanKind::Producer,
            Kind::Consumer => SpanKind::Consumer,
        },
        name: span.name,
        start_time: span.start,
        // The machine's clock may have been set back meanwhile.
        end_time: span.end.max(span.start),
        attributes: span.attributes.into_iter().map(|(name, value)| KeyValue::new(name, attribute(value))).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: span.error.map_or(Status::Unset, |error| Status::Error { description: error }),
        instrumentation_scope: SCOPE.clone(),
    }
}

fn context(context: Context, is_remote: bool) -> SpanContext {
    let flags = if context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    SpanContext::new(
        TraceId::from_bytes(context.trace_id.to_bytes()),
        SpanId::from_bytes(context.span_id.to_bytes()),
        flags,
        is_remote,
        TraceState::default(),
    )
}

fn attribute(value: Value) -> OtlpValue {
    match value {
        Value::Text(text) => OtlpValue::String(StringValue::from(text)),
        Value::Shared(text) => OtlpValue::String(StringValue::from(text)),
        Value::Int(number) => OtlpValue::I64(number),
    }
}
