//! What the decoders and encoders refuse, each with its reason.

use std::error::Error as _;

use prost::Message;
use serde_json::{Value, json};
use tidings_event::{
    Error, Event, Timestamp,
    cloudevents::{MAX_EVENT_BYTES, json, protobuf},
};

use crate::samples::{SOURCE, followed, raw};

/// The JSON of an event with one member set, or removed by null.
fn changed(name: &str, value: Value) -> String {
    let mut event: Value = serde_json::from_str(&json::encode(&followed(), SOURCE).unwrap()).unwrap();
    event[name] = value;
    event.to_string()
}

fn refusal(json: &str) -> Error {
    json::decode(json.as_bytes()).expect_err(json)
}

#[test]
fn a_missing_attribute_is_named() {
    let required = [
        "specversion",
        "id",
        "source",
        "type",
        "subject",
        "time",
        "partitionkey",
        "sequence",
        "aggregatetype",
        "schemaversion",
    ];
    for required in required {
        assert!(matches!(refusal(&changed(required, Value::Null)), Error::Missing { name } if name == required));
    }
    let without_data = changed("data", Value::Null).replace(r#","data":null"#, "");
    assert!(matches!(refusal(&without_data), Error::Missing { name: "data" }));
}

#[test]
fn an_attribute_that_breaks_a_rule_is_named() {
    let cases = [
        ("specversion", json!("0.3")),
        ("specversion", json!(1.0)),
        ("source", json!("")),
        ("type", json!("a\u{0}b")),
        ("subject", json!("")),
        ("subject", json!({"a": 1})),
        ("id", json!("01936F5C-0000-7000-8000-00000000000F")),
        ("id", json!("{01936f5c-0000-7000-8000-00000000000f}")),
        ("datacontenttype", json!("text/plain")),
        ("datacontenttype", json!("application/cloudevents+json")),
        ("partitionkey", json!(17)),
        ("sequence", json!(7)),
        ("sequence", json!("-1")),
        ("sequence", json!("+1")),
        ("sequence", json!("18446744073709551616")),
        ("sequence", json!("000000000000000000001")),
        ("schemaversion", json!(0)),
        ("schemaversion", json!(-1)),
        ("schemaversion", json!(1.5)),
        ("schemaversion", json!(2_147_483_648_u32)),
        ("schemaversion", json!("")),
        ("traceparent", json!(1)),
        ("useragent", json!("line\nbreak")),
        ("metadatajson", json!({})),
        ("Upper", json!("x")),
        ("", json!("x")),
        ("nested", json!([])),
        ("fraction", json!(1.5)),
        ("big", json!(2_147_483_648_u32)),
        ("control", json!("\u{85}")),
        ("nonchar", json!("\u{fdd0}")),
        ("data_base64", json!("e30=")),
    ];
    for (name, value) in cases {
        let refusal = refusal(&changed(name, value.clone()));
        let expected = if name == "data_base64" { "data" } else { name };
        assert!(matches!(&refusal, Error::Attribute { name, .. } if name == expected), "{name} {value}: {refusal:?}");
    }
    assert!(matches!(refusal(&changed("id", json!("7"))), Error::Id { .. }));
    assert!(matches!(refusal(&changed("time", json!("yesterday"))), Error::Time { .. }));
    assert!(matches!(refusal(&changed("time", json!("9999-12-31T23:59:59-01:00"))), Error::TimeOutOfRange));
    assert!(matches!(refusal(&changed("metadatajson", json!("[]"))), Error::Metadata { .. }));
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    let once = json::encode(&followed(), SOURCE).unwrap();
    for twice in [r#""type":"x","#, r#""data":1,"#, r#""tenant":"red","#, r#""\u0074ype":"x","#, r#""subject":null,"#] {
        let json = once.replacen('{', &format!("{{{twice}"), 1);
        let refusal = refusal(&json);
        assert!(matches!(refusal, Error::Json { .. }), "{json}: {refusal:?}");
        assert!(refusal.source().unwrap().to_string().contains("duplicate"), "the cause is kept");
    }
}

#[test]
fn what_is_not_one_json_object_is_refused() {
    let whole = json::encode(&followed(), SOURCE).unwrap();
    let cut = &whole[..whole.len() - 1];
    let twice = format!("{whole}{whole}");
    for json in ["", "null", "[]", "{", "{]", "\u{feff}{}", cut, &twice] {
        assert!(matches!(refusal(json), Error::Json { .. }), "{json}");
    }
    assert!(matches!(json::decode(b"{\"type\":\"\xff\"}"), Err(Error::Utf8 { .. })));
    assert!(matches!(refusal(&"[".repeat(500_000)), Error::Json { .. }), "deep nesting is no stack overflow");
    let deep = changed("deep", Value::Null).replace("\"deep\":null", &format!("\"deep\":{}", "[".repeat(400_000)));
    assert!(matches!(refusal(&deep), Error::Json { .. }));
}

#[test]
fn data_that_is_not_json_is_refused() {
    let with_binary = |base64: &str| {
        let mut event: Value = serde_json::from_str(&changed("data_base64", json!(base64))).unwrap();
        event.as_object_mut().unwrap().remove("data");
        refusal(&event.to_string())
    };
    assert!(matches!(with_binary("not base64"), Error::Base64 { .. }));
    assert!(matches!(with_binary("/w=="), Error::Data { .. }), "a byte that is no UTF-8");
    assert!(matches!(with_binary("ew=="), Error::Data { .. }), "half an object");
    assert!(matches!(with_binary(""), Error::Data { .. }));
}

#[test]
fn sizes_over_the_limit_are_refused_in_both_directions() {
    let mut event = followed();
    event.payload = raw(&format!("\"{}\"", "x".repeat(MAX_EVENT_BYTES)));
    assert!(matches!(json::encode(&event, SOURCE), Err(Error::TooLarge { .. })));
    assert!(matches!(protobuf::encode(&event, SOURCE), Err(Error::TooLarge { .. })));
    let bytes = vec![b' '; MAX_EVENT_BYTES + 1];
    assert!(matches!(json::decode(&bytes), Err(Error::TooLarge { .. })));
    assert!(matches!(protobuf::decode(&bytes), Err(Error::TooLarge { .. })));

    event.payload = raw("\"\"");
    let room = MAX_EVENT_BYTES - json::encode(&event, SOURCE).unwrap().len();
    event.payload = raw(&format!("\"{}\"", "x".repeat(room)));
    let largest = json::encode(&event, SOURCE).unwrap();
    assert_eq!(largest.len(), MAX_EVENT_BYTES);
    assert_eq!(json::decode(largest.as_bytes()).unwrap(), event);
}

#[test]
fn an_event_that_no_attribute_can_hold_is_not_written() {
    let breaks: [fn(&mut Event); 8] = [
        |event| event.event_type.clear(),
        |event| event.aggregate_type.clear(),
        |event| event.aggregate_id.clear(),
        |event| event.key.clear(),
        |event| event.key.push('\n'),
        |event| event.schema_version = 0,
        |event| event.schema_version = u32::MAX,
        |event| event.occurred_at = Timestamp(i64::MAX),
    ];
    for (index, change) in breaks.into_iter().enumerate() {
        let mut event = followed();
        change(&mut event);
        assert!(json::encode(&event, SOURCE).is_err(), "{index}");
        assert!(protobuf::encode(&event, SOURCE).is_err(), "{index}");
    }
    for source in ["", "a\nb"] {
        assert!(matches!(json::encode(&followed(), source), Err(Error::Attribute { name, .. }) if name == "source"));
    }
}

/// A message of the same tags, looser than the real one: no attribute, any data.
#[derive(Clone, PartialEq, Message)]
struct Loose {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(bytes = "vec", optional, tag = "6")]
    binary_data: Option<Vec<u8>>,
    #[prost(string, optional, tag = "7")]
    text_data: Option<String>,
    #[prost(bytes = "vec", optional, tag = "8")]
    proto_data: Option<Vec<u8>>,
}

/// The bytes of an event with fields appended: the last of a field wins in Protobuf.
fn appended(fields: Loose) -> Vec<u8> {
    let mut bytes = protobuf::encode(&followed(), SOURCE).unwrap();
    fields.encode(&mut bytes).unwrap();
    bytes
}

#[test]
fn data_in_protobuf_may_be_text_or_bytes_of_json_only() {
    let binary = appended(Loose { binary_data: Some(b" {}".to_vec()), ..Loose::default() });
    assert_eq!(protobuf::decode(&binary).unwrap().payload.get(), "{}");
    let refused = [
        Loose { binary_data: Some(b"\xff".to_vec()), ..Loose::default() },
        Loose { text_data: Some("{".to_owned()), ..Loose::default() },
        Loose { text_data: Some(String::new()), ..Loose::default() },
    ];
    for data in refused {
        assert!(matches!(protobuf::decode(&appended(data)), Err(Error::Data { .. })));
    }
    let message = appended(Loose { proto_data: Some(Vec::new()), ..Loose::default() });
    assert!(matches!(protobuf::decode(&message), Err(Error::Attribute { name, .. }) if name == "data"));
}

#[test]
fn what_is_not_the_message_is_refused_in_protobuf() {
    assert!(matches!(protobuf::decode(b""), Err(Error::Missing { name: "data" })));
    assert!(matches!(protobuf::decode(b"\x0a\xff"), Err(Error::Protobuf { .. })), "a length past the end");
    assert!(matches!(protobuf::decode(b"\x0a\x01\xff"), Err(Error::Protobuf { .. })), "a text that is not UTF-8");
    let no_id = appended(Loose { id: String::new(), ..Loose::default() });
    assert!(protobuf::decode(&no_id).is_ok(), "an empty text is not on the wire, so nothing was changed");
    let mut emptied = protobuf::encode(&followed(), SOURCE).unwrap();
    emptied.extend(b"\x0a\x00");
    assert!(matches!(protobuf::decode(&emptied), Err(Error::Missing { name: "id" })));
    // An entry `id` among the attributes would contradict the field.
    let mut doubled = protobuf::encode(&followed(), SOURCE).unwrap();
    doubled.extend(b"\x2a\x09\x0a\x02id\x12\x03\x1a\x01x");
    assert!(matches!(protobuf::decode(&doubled), Err(Error::Attribute { name, .. }) if name == "id"));
    // So would a second entry of the same name.
    let mut doubled = protobuf::encode(&followed(), SOURCE).unwrap();
    doubled.extend(b"\x2a\x0d\x0a\x06tenant\x12\x03\x1a\x01x");
    assert!(matches!(protobuf::decode(&doubled), Err(Error::Attribute { name, .. }) if name == "tenant"));
    // An attribute `x` of a timestamp with two billion nanoseconds.
    let mut nanos = protobuf::encode(&followed(), SOURCE).unwrap();
    nanos.extend(b"\x2a\x0d\x0a\x01x\x12\x08\x3a\x06\x10\x80\xa8\xd6\xb9\x07");
    assert!(matches!(protobuf::decode(&nanos), Err(Error::Attribute { name, .. }) if name == "x"));
}
