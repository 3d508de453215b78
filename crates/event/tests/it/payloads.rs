//! The typed payloads.

use std::error::Error as _;

use tidings_event::{
    Error, Timestamp,
    payload::{self, Followed, Payload, RecountRequested, Registered, Restated, Unfollowed},
};

use crate::samples::{MOMENT, followed, raw, recount_requested, registered, restated, unfollowed};

#[test]
fn known_types_tell_their_newest_version() {
    for event in [followed(), unfollowed(), registered(), restated(), recount_requested()] {
        assert_eq!(payload::known(&event.event_type), Some(event.schema_version), "{}", event.event_type);
        assert!(event.event_type.starts_with(event.family()));
    }
    for unknown in ["", "relation", "relation.followed.", "Relation.followed", "post.published"] {
        assert_eq!(payload::known(unknown), None, "{unknown}");
    }
}

#[test]
fn each_payload_is_read_as_it_was_written() {
    let read = Followed::read(&followed()).unwrap();
    assert_eq!((read.from.get(), read.to.get(), read.followed_at), (17, i64::MAX, MOMENT));
    let read = Unfollowed::read(&unfollowed()).unwrap();
    assert_eq!((read.followed_at, read.unfollowed_at), (MOMENT, Timestamp(MOMENT.0 + 60_000)));
    let read = Restated::read(&restated()).unwrap();
    assert_eq!((read.following, read.created_at, read.updated_at), (true, Timestamp(MOMENT.0 - 60_000), MOMENT));
    assert_eq!(RecountRequested::read(&recount_requested()).unwrap().user.get(), 17);
    let read = Registered::read(&registered()).unwrap();
    assert_eq!((read.handle.as_str(), read.ordinal), ("小明🎈", u32::MAX));
}

#[test]
fn unknown_fields_are_kept_in_order() {
    let text = r#"{"from":"1","to":"2","followed_at":3,"z":{"deep":[1.10]},"a":"\u0001","🎈":null}"#;
    let mut event = followed();
    event.payload = raw(text);
    let read = Followed::read(&event).unwrap();
    assert_eq!(read.rest.len(), 3);
    assert_eq!(read.write().unwrap().get(), text.replace("1.10", "1.1"));
}

#[test]
fn names_are_read_also_where_escapes_stand_in_them() {
    let mut event = followed();
    event.payload = raw(r#"{"\u0066rom":"1","to":2,"followed\u005fat":3}"#);
    let read = Followed::read(&event).unwrap();
    assert_eq!((read.from.get(), read.to.get(), read.followed_at.0), (1, 2, 3));
}

#[test]
fn a_schema_version_that_is_too_new_is_an_error() {
    let mut event = followed();
    event.schema_version = Followed::SCHEMA_VERSION + 1;
    let refused = Followed::read(&event);
    assert!(matches!(refused, Err(Error::SchemaTooNew { event_type: "relation.followed", found: 2, known: 1 })));
}

#[test]
fn another_type_is_an_error() {
    let refused = Unfollowed::read(&followed());
    assert!(matches!(refused, Err(Error::OtherType { expected: "relation.unfollowed", .. })));
}

#[test]
fn a_malformed_payload_is_an_error_with_its_cause() {
    let malformed = [
        r#"{}"#,
        r#"[1,2,3]"#,
        r#"null"#,
        r#"{"from":"1","to":"2"}"#,
        r#"{"from":"1","to":"2","followed_at":null}"#,
        r#"{"from":"1","from":"1","to":"2","followed_at":3}"#,
        r#"{"from":"01","to":"2","followed_at":3}"#,
        r#"{"from":-1,"to":"2","followed_at":3}"#,
        r#"{"from":"9223372036854775808","to":"2","followed_at":3}"#,
        r#"{"from":9223372036854775808,"to":"2","followed_at":3}"#,
        r#"{"from":1.0,"to":"2","followed_at":3}"#,
        r#"{"from":"1","to":"2","followed_at":"3"}"#,
        r#"{"from":"\ud800","to":"2","followed_at":3}"#,
    ];
    for text in malformed {
        let mut event = followed();
        event.payload = raw(text);
        let error = Followed::read(&event).expect_err(text);
        assert!(matches!(error, Error::Malformed { .. }) && error.source().is_some(), "{text}: {error:?}");
    }
    let mut deep = followed();
    deep.payload = raw(&format!(r#"{{"new":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)));
    assert!(matches!(Followed::read(&deep), Err(Error::Malformed { .. })), "deep nesting is no stack overflow");
}
