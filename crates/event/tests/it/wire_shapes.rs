//! The exact bytes of the known events in both formats. A difference here is a difference that
//! consumers see.

use tidings_event::{Event, cloudevents};

use crate::samples::{SOURCE, assert_round_trips, followed, recount_requested, registered, restated, unfollowed};

fn json(event: &Event) -> String {
    assert_round_trips(event);
    // One member a line, for the reader.
    cloudevents::json::encode(event, SOURCE).unwrap().replace(",\"", ",\n\"")
}

fn protobuf(event: &Event) -> String {
    walk(&cloudevents::protobuf::encode(event, SOURCE).unwrap(), 0)
}

/// Reads a base-128 number off the front.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Prints a message as `field number: value` in braces, knowing nothing of it but the wire format
/// and that the fields 5 (of the event), 2 (of its entries) and 7 (of a value) are messages.
fn walk(mut bytes: &[u8], depth: usize) -> String {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let (field, wire_type) = (tag >> 3, tag & 7);
        if wire_type == 0 {
            fields.push(format!("{field}: {}", varint(&mut bytes)));
            continue;
        }
        assert_eq!(wire_type, 2, "only numbers and what has a length occur");
        let length = usize::try_from(varint(&mut bytes)).unwrap();
        let (value, rest) = bytes.split_at(length);
        bytes = rest;
        if [(0, 5), (1, 2), (2, 7)].contains(&(depth, field)) {
            fields.push(format!("{field}: {{{}}}", walk(value, depth + 1)));
        } else {
            fields.push(format!("{field}: {}", std::str::from_utf8(value).unwrap()));
        }
    }
    fields.join(if depth == 0 { "\n" } else { ", " })
}

#[test]
fn followed_in_json() {
    insta::assert_snapshot!(json(&followed()), @r#"
    {"specversion":"1.0",
    "id":"01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5",
    "source":"/tidings",
    "type":"relation.followed",
    "subject":"17:9223372036854775807",
    "time":"2026-11-29T15:26:17.123Z",
    "datacontenttype":"application/json",
    "partitionkey":"17",
    "sequence":"00000000000000000001",
    "aggregatetype":"relation",
    "schemaversion":1,
    "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "requestid":"req-1",
    "useragent":"curl/8.14.1",
    "sourceip":"2001:db8::1",
    "tenant":"blue",
    "data":{"from":"17",
    "to":"9223372036854775807",
    "followed_at":1795965977123}}
    "#);
}

#[test]
fn unfollowed_in_json() {
    insta::assert_snapshot!(json(&unfollowed()), @r#"
    {"specversion":"1.0",
    "id":"01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5",
    "source":"/tidings",
    "type":"relation.unfollowed",
    "subject":"17:42",
    "time":"2026-11-29T15:26:17.123Z",
    "datacontenttype":"application/json",
    "partitionkey":"17",
    "sequence":"00000000000000000002",
    "aggregatetype":"relation",
    "schemaversion":1,
    "data":{"from":"17",
    "to":"42",
    "followed_at":1795965977123,
    "unfollowed_at":1795966037123}}
    "#);
}

#[test]
fn restated_in_json() {
    insta::assert_snapshot!(json(&restated()), @r#"
    {"specversion":"1.0",
    "id":"01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5",
    "source":"/tidings",
    "type":"relation.restated",
    "subject":"17:42",
    "time":"2026-11-29T15:26:17.123Z",
    "datacontenttype":"application/json",
    "partitionkey":"17",
    "sequence":"00000000000000000003",
    "aggregatetype":"relation",
    "schemaversion":1,
    "data":{"from":"17",
    "to":"42",
    "following":true,
    "created_at":1795965917123,
    "updated_at":1795965977123}}
    "#);
}

#[test]
fn recount_requested_in_json() {
    insta::assert_snapshot!(json(&recount_requested()), @r#"
    {"specversion":"1.0",
    "id":"01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5",
    "source":"/tidings",
    "type":"relation.recount_requested",
    "subject":"17",
    "time":"2026-11-29T15:26:17.123Z",
    "datacontenttype":"application/json",
    "partitionkey":"17",
    "sequence":"00000000000000000001",
    "aggregatetype":"counters",
    "schemaversion":1,
    "data":{"user":"17"}}
    "#);
}

#[test]
fn registered_in_json() {
    insta::assert_snapshot!(json(&registered()), @r#"
    {"specversion":"1.0",
    "id":"01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5",
    "source":"/tidings",
    "type":"account.registered",
    "subject":"17",
    "time":"2026-11-29T15:26:17.123Z",
    "datacontenttype":"application/json",
    "partitionkey":"17",
    "sequence":"00000000000000000001",
    "aggregatetype":"account",
    "schemaversion":1,
    "data":{"user":"17",
    "handle":"小明🎈",
    "ordinal":4294967295}}
    "#);
}

#[test]
fn followed_in_protobuf() {
    insta::assert_snapshot!(protobuf(&followed()), @r#"
    1: 01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5
    2: /tidings
    3: 1.0
    4: relation.followed
    5: {1: subject, 2: {3: 17:9223372036854775807}}
    5: {1: time, 2: {7: {1: 1795965977, 2: 123000000}}}
    5: {1: datacontenttype, 2: {3: application/json}}
    5: {1: partitionkey, 2: {3: 17}}
    5: {1: sequence, 2: {3: 00000000000000000001}}
    5: {1: aggregatetype, 2: {3: relation}}
    5: {1: schemaversion, 2: {2: 1}}
    5: {1: traceparent, 2: {3: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01}}
    5: {1: requestid, 2: {3: req-1}}
    5: {1: useragent, 2: {3: curl/8.14.1}}
    5: {1: sourceip, 2: {3: 2001:db8::1}}
    5: {1: tenant, 2: {3: blue}}
    7: {"from":"17","to":"9223372036854775807","followed_at":1795965977123}
    "#);
}

#[test]
fn unfollowed_in_protobuf() {
    insta::assert_snapshot!(protobuf(&unfollowed()), @r#"
    1: 01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5
    2: /tidings
    3: 1.0
    4: relation.unfollowed
    5: {1: subject, 2: {3: 17:42}}
    5: {1: time, 2: {7: {1: 1795965977, 2: 123000000}}}
    5: {1: datacontenttype, 2: {3: application/json}}
    5: {1: partitionkey, 2: {3: 17}}
    5: {1: sequence, 2: {3: 00000000000000000002}}
    5: {1: aggregatetype, 2: {3: relation}}
    5: {1: schemaversion, 2: {2: 1}}
    7: {"from":"17","to":"42","followed_at":1795965977123,"unfollowed_at":1795966037123}
    "#);
}

#[test]
fn registered_in_protobuf() {
    insta::assert_snapshot!(protobuf(&registered()), @r#"
    1: 01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5
    2: /tidings
    3: 1.0
    4: account.registered
    5: {1: subject, 2: {3: 17}}
    5: {1: time, 2: {7: {1: 1795965977, 2: 123000000}}}
    5: {1: datacontenttype, 2: {3: application/json}}
    5: {1: partitionkey, 2: {3: 17}}
    5: {1: sequence, 2: {3: 00000000000000000001}}
    5: {1: aggregatetype, 2: {3: account}}
    5: {1: schemaversion, 2: {2: 1}}
    7: {"user":"17","handle":"小明🎈","ordinal":4294967295}
    "#);
}

#[test]
fn restated_in_protobuf() {
    insta::assert_snapshot!(protobuf(&restated()), @r#"
    1: 01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5
    2: /tidings
    3: 1.0
    4: relation.restated
    5: {1: subject, 2: {3: 17:42}}
    5: {1: time, 2: {7: {1: 1795965977, 2: 123000000}}}
    5: {1: datacontenttype, 2: {3: application/json}}
    5: {1: partitionkey, 2: {3: 17}}
    5: {1: sequence, 2: {3: 00000000000000000003}}
    5: {1: aggregatetype, 2: {3: relation}}
    5: {1: schemaversion, 2: {2: 1}}
    7: {"from":"17","to":"42","following":true,"created_at":1795965917123,"updated_at":1795965977123}
    "#);
}

#[test]
fn recount_requested_in_protobuf() {
    insta::assert_snapshot!(protobuf(&recount_requested()), @r#"
    1: 01a227ea-0223-75a5-a5a5-a5a5a5a5a5a5
    2: /tidings
    3: 1.0
    4: relation.recount_requested
    5: {1: subject, 2: {3: 17}}
    5: {1: time, 2: {7: {1: 1795965977, 2: 123000000}}}
    5: {1: datacontenttype, 2: {3: application/json}}
    5: {1: partitionkey, 2: {3: 17}}
    5: {1: sequence, 2: {3: 00000000000000000001}}
    5: {1: aggregatetype, 2: {3: counters}}
    5: {1: schemaversion, 2: {2: 1}}
    7: {"user":"17"}
    "#);
}
