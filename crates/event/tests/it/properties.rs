//! What holds for every event and for any bytes.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Number, Value};
use tidings_event::{
    Event, EventId, Metadata, Timestamp,
    cloudevents::{json, protobuf},
    payload::{Followed, Payload, Registered},
};

use crate::samples::{SOURCE, assert_round_trips, followed};

/// What an attribute can hold: no control characters, and not empty.
const TEXT: &str = "\\PC{1,24}";
/// Any text at all.
const ANY: &str = "(?s).{0,24}";

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| Number::from_f64(number).map(Value::Number)),
        ANY.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((ANY, inner), 0..5).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Names both legal and not, without those that `known` has a field for.
fn any_rest(known: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof!["[a-z0-9]{1,24}", Just("id".to_owned()), Just("data".to_owned()), ANY];
    let name = name.prop_filter("known", |name| !known.contains(&name.as_str()));
    vec((name, any_json()), 0..6).prop_map(Map::from_iter)
}

prop_compose! {
    fn any_metadata()(
        traceparent in option::of(TEXT),
        request_id in option::of(ANY),
        user_agent in option::of(ANY),
        source_ip in option::of(TEXT),
        other in any_rest(&["traceparent", "request_id", "user_agent", "source_ip"]),
    ) -> Metadata {
        Metadata { traceparent, request_id, user_agent, source_ip, other }
    }
}

prop_compose! {
    fn any_event()(
        id in any::<[u8; 16]>(),
        (event_type, aggregate_type, aggregate_id, key) in (TEXT, TEXT, TEXT, TEXT),
        schema_version in 1..=2_147_483_647_u32,
        version in any::<u64>(),
        occurred_at in Timestamp::EARLIEST.0..=Timestamp::LATEST.0,
        payload in any_json(),
        metadata in any_metadata(),
    ) -> Event {
        Event {
            id: EventId::from_bytes(id),
            event_type,
            schema_version,
            aggregate_type,
            aggregate_id,
            key,
            version,
            occurred_at: Timestamp(occurred_at),
            payload: serde_json::value::to_raw_value(&payload).unwrap(),
            metadata,
        }
    }
}

/// What holds of any bytes: an event that was read can be written and read again as the same.
fn assert_stable(bytes: &[u8]) {
    for event in [json::decode(bytes), protobuf::decode(bytes)].into_iter().flatten() {
        assert_round_trips(&event);
    }
}

proptest! {
    #[test]
    fn every_event_survives_both_formats(event in any_event()) {
        assert_round_trips(&event);
    }

    #[test]
    fn all_metadata_survives_the_outbox(metadata in any_metadata()) {
        prop_assert_eq!(Metadata::from_json(&metadata.to_json()).unwrap(), metadata);
    }

    #[test]
    fn unknown_payload_fields_survive(
        (from, to, at) in (0..=i64::MAX, 0..=i64::MAX, any::<i64>()),
        rest in any_rest(&["from", "to", "followed_at"]),
    ) {
        let followed_at = Timestamp(at);
        let payload = Followed { from: from.try_into().unwrap(), to: to.try_into().unwrap(), followed_at, rest };
        let mut event = followed();
        event.payload = payload.write().unwrap();
        prop_assert_eq!(Followed::read(&event).unwrap(), payload);
    }

    #[test]
    fn every_handle_survives(
        (user, handle, ordinal) in (0..=i64::MAX, ANY, any::<u32>()),
        rest in any_rest(&["user", "handle", "ordinal"]),
    ) {
        let payload = Registered { user: user.try_into().unwrap(), handle, ordinal, rest };
        let text = payload.write().unwrap();
        prop_assert_eq!(serde_json::from_str::<Registered>(text.get()).unwrap(), payload);
    }

    #[test]
    fn every_moment_with_a_text_survives_it(millis in Timestamp::EARLIEST.0..=Timestamp::LATEST.0) {
        let text = Timestamp(millis).to_string();
        prop_assert_eq!(text.len(), 24);
        prop_assert_eq!(text.parse::<Timestamp>().unwrap(), Timestamp(millis));
    }

    #[test]
    fn any_text_as_a_moment_is_no_panic(text in ANY, millis in any::<i64>()) {
        if let Ok(moment) = text.parse::<Timestamp>() {
            prop_assert!(moment >= Timestamp::EARLIEST && moment <= Timestamp::LATEST);
        }
        prop_assert!(!Timestamp(millis).to_string().is_empty());
    }

    #[test]
    fn any_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..256)) {
        assert_stable(&bytes);
    }

    #[test]
    fn damaged_events_are_no_panic(
        event in any_event(),
        (place, byte, cut) in (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()),
    ) {
        let json = json::encode(&event, SOURCE).unwrap().into_bytes();
        let protobuf = protobuf::encode(&event, SOURCE).unwrap();
        for mut bytes in [json, protobuf] {
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if cut {
                bytes.truncate(place);
            }
            assert_stable(&bytes);
        }
    }
}
