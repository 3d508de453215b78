//! The JSON form against the rules of CloudEvents 1.0.2 and of the extensions used.

use serde_json::{Map, Value, json};
use tidings_event::{Event, EventId, Timestamp, cloudevents::json};

use crate::samples::{SOURCE, followed, raw, registered, unfollowed};

fn members(event: &Event) -> Map<String, Value> {
    serde_json::from_str(&json::encode(event, SOURCE).unwrap()).unwrap()
}

/// A legal event of a foreign producer, with the given members beside or instead of the usual.
fn foreign(changes: Value) -> Value {
    let mut event = json!({
        "specversion": "1.0",
        "id": "0190a5a5-0000-7000-8000-00000000000f",
        "source": "https://example.org/graph",
        "type": "relation.followed",
        "subject": "17:42",
        "time": "2026-11-29T23:26:17.1239+08:00",
        "partitionkey": "17",
        "sequence": "7",
        "aggregatetype": "relation",
        "schemaversion": 1,
        "data": {"from": "17"},
    });
    event.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    event
}

fn decode(event: &Value) -> Event {
    json::decode(event.to_string().as_bytes()).unwrap()
}

fn assert_member_is_legal(name: &str, value: &Value) {
    assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{name}");
    assert!(name.len() <= 20, "the specification asks for at most 20 characters: {name}");
    match value {
        Value::Bool(_) => {}
        Value::Number(number) => {
            let number = number.as_i64().unwrap();
            assert!(i32::try_from(number).is_ok(), "{name} is an Integer of 32 bits");
        }
        Value::String(text) => assert!(!text.is_empty() && !text.chars().any(char::is_control), "{name}"),
        other => panic!("{name} has a type that CloudEvents does not know: {other}"),
    }
}

#[test]
fn every_attribute_has_a_legal_name_and_type() {
    let mut odd = followed();
    odd.metadata.user_agent = Some("tab\there, delete\u{7f}, nonchar\u{fffe}\u{10ffff}".to_owned());
    odd.metadata.source_ip = Some(String::new());
    odd.metadata.other = serde_json::from_str(
        r#"{"Upper":1,"with-hyphen":"x","":true,"id":"taken","data":"taken","nested":{"a":[1]},"big":4294967296,
            "fraction":0.5,"nothing":null,"control":"a\u0001b","flag":true,"number":-2147483648,"dataschema":""}"#,
    )
    .unwrap();
    for event in [followed(), unfollowed(), registered(), odd] {
        let members = members(&event);
        for (name, value) in members.iter().filter(|(name, _)| *name != "data") {
            assert_member_is_legal(name, value);
        }
        assert_eq!(members["specversion"], "1.0");
        assert_eq!(members["datacontenttype"], "application/json");
        assert_eq!(members["time"].as_str().unwrap().parse::<Timestamp>().unwrap(), event.occurred_at);
        assert_eq!(members["id"].as_str().unwrap().parse::<EventId>().unwrap(), event.id);
        for name in ["source", "type", "subject", "partitionkey", "sequence", "aggregatetype"] {
            assert!(members[name].is_string(), "{name}");
        }
        assert!(members["schemaversion"].is_i64() || members["schemaversion"].is_u64());
        crate::samples::assert_round_trips(&event);
    }
}

#[test]
fn sequences_sort_as_text_like_their_versions() {
    let mut event = followed();
    let mut texts = Vec::new();
    for version in [0, 1, 9, 10, 99, 1_000_000, u64::MAX - 1, u64::MAX] {
        event.version = version;
        texts.push(members(&event)["sequence"].as_str().unwrap().to_owned());
        crate::samples::assert_round_trips(&event);
    }
    assert!(texts.is_sorted());
    assert_eq!(texts[1], "00000000000000000001");
}

#[test]
fn the_payload_passes_byte_for_byte() {
    for payload in [
        "{ \"b\" : 1.00,\n\t\"a\":1e2, \"a\": \"\\u00e9\\ud83c\" }",
        "null",
        "\"a text\"",
        "123456789012345678901234567890.10",
        "[]",
    ] {
        let mut event = followed();
        event.payload = raw(payload);
        let json = json::encode(&event, SOURCE).unwrap();
        assert!(json.ends_with(&format!("\"data\":{payload}}}")), "{json}");
        crate::samples::assert_round_trips(&event);
    }
}

#[test]
fn a_foreign_event_is_read() {
    let event = decode(&foreign(json!({})));
    assert_eq!(event.version, 7);
    assert_eq!(event.occurred_at, Timestamp(1_795_965_977_123), "any offset, cut to milliseconds");
    assert_eq!(decode(&foreign(json!({"datacontenttype": "Application/JSON; charset=utf-8"}))), event);
    assert_eq!(decode(&foreign(json!({"schemaversion": "1"}))), event, "as a header binding writes it");
    assert_eq!(decode(&foreign(json!({"traceparent": null, "data_base64": null, "x": null}))), event, "null is unset");
}

#[test]
fn binary_data_is_read_if_it_is_json() {
    let mut binary = foreign(json!({"data_base64": "eyJmcm9tIjoiMTcifQ=="}));
    binary.as_object_mut().unwrap().remove("data");
    assert_eq!(decode(&binary), decode(&foreign(json!({}))));
}

#[test]
fn extension_attributes_that_are_not_known_survive_reading_and_writing() {
    let extensions = json!({
        "dataschema": "https://example.org/schema", "tenant": "蓝🎈", "sampledrate": 30, "hot": true, "empty": "",
        "anextensionwithaverylongname": "kept",
    });
    let event = decode(&foreign(extensions.clone()));
    let written = members(&event);
    for (name, value) in extensions.as_object().unwrap() {
        assert_eq!(&written[name], value, "{name}");
    }
    assert!(!written.contains_key("metadatajson"));
    crate::samples::assert_round_trips(&event);
}

#[test]
fn an_attribute_wins_over_the_metadata_in_json() {
    let inner = r#"{"user_agent":"inner","source_ip":"::1","tenant":"inner","Odd":[1]}"#;
    let event = decode(&foreign(json!({"metadatajson": inner, "useragent": "outer", "tenant": "outer"})));
    assert_eq!(event.metadata.user_agent.as_deref(), Some("outer"));
    assert_eq!(event.metadata.source_ip.as_deref(), Some("::1"));
    assert_eq!(Value::Object(event.metadata.other.clone()), json!({"tenant": "outer", "Odd": [1]}));
    crate::samples::assert_round_trips(&event);
}
