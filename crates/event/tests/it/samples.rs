//! Events that several tests start from.

use serde_json::{Map, Value, value::RawValue};
use tidings_event::{
    Event, EventId, Metadata, Timestamp, cloudevents,
    payload::{Followed, Payload, RecountRequested, Registered, Rest, Restated, Unfollowed},
};

pub(crate) const SOURCE: &str = "/tidings";
pub(crate) const MOMENT: Timestamp = Timestamp(1_795_965_977_123);

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn event<P: Payload>(payload: &P, aggregate: (&str, &str), key: &str, version: u64) -> Event {
    Event {
        id: EventId::from_parts(MOMENT, &[0xa5; 10]),
        event_type: P::EVENT_TYPE.to_owned(),
        schema_version: P::SCHEMA_VERSION,
        aggregate_type: aggregate.0.to_owned(),
        aggregate_id: aggregate.1.to_owned(),
        key: key.to_owned(),
        version,
        occurred_at: MOMENT,
        payload: payload.write().unwrap(),
        metadata: Metadata::default(),
    }
}

pub(crate) fn followed() -> Event {
    let payload = Followed {
        from: 17.try_into().unwrap(),
        to: i64::MAX.try_into().unwrap(),
        followed_at: MOMENT,
        rest: Rest::new(),
    };
    let mut event = event(&payload, ("relation", "17:9223372036854775807"), "17", 1);
    event.metadata = Metadata {
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        request_id: Some("req-1".to_owned()),
        user_agent: Some("curl/8.14.1".to_owned()),
        source_ip: Some("2001:db8::1".to_owned()),
        other: Map::from_iter([("tenant".to_owned(), Value::from("blue"))]),
    };
    event
}

pub(crate) fn unfollowed() -> Event {
    let payload = Unfollowed {
        from: 17.try_into().unwrap(),
        to: 42.try_into().unwrap(),
        followed_at: MOMENT,
        unfollowed_at: Timestamp(MOMENT.0 + 60_000),
        rest: Rest::new(),
    };
    event(&payload, ("relation", "17:42"), "17", 2)
}

pub(crate) fn restated() -> Event {
    let payload = Restated {
        from: 17.try_into().unwrap(),
        to: 42.try_into().unwrap(),
        following: true,
        created_at: Timestamp(MOMENT.0 - 60_000),
        updated_at: MOMENT,
        rest: Rest::new(),
    };
    event(&payload, ("relation", "17:42"), "17", 3)
}

pub(crate) fn recount_requested() -> Event {
    let payload = RecountRequested { user: 17.try_into().unwrap(), rest: Rest::new() };
    event(&payload, ("counters", "17"), "17", 1)
}

pub(crate) fn registered() -> Event {
    let payload =
        Registered {
            user: 17.try_into().unwrap(), handle: "小明🎈".to_owned(), ordinal: u32::MAX, rest: Rest::new()
        };
    event(&payload, ("account", "17"), "17", 1)
}

/// Asserts that an event survives both formats.
pub(crate) fn assert_round_trips(event: &Event) {
    let json = cloudevents::json::encode(event, SOURCE).unwrap();
    assert_eq!(&cloudevents::json::decode(json.as_bytes()).unwrap(), event, "{json}");
    let protobuf = cloudevents::protobuf::encode(event, SOURCE).unwrap();
    assert_eq!(&cloudevents::protobuf::decode(&protobuf).unwrap(), event, "{protobuf:?}");
}
