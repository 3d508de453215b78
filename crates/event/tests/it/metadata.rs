//! The metadata as the outbox stores it.

use std::error::Error as _;

use tidings_event::{Error, Metadata};

use crate::samples::followed;

#[test]
fn nothing_to_tell_is_the_empty_object() {
    assert!(Metadata::default().is_empty());
    assert_eq!(Metadata::default().to_json(), "{}");
    assert_eq!(Metadata::from_json("{}").unwrap(), Metadata::default());
    assert_eq!(Metadata::from_json(" { } ").unwrap(), Metadata::default());
    assert_eq!(Metadata::from_json(r#"{"user_agent":null}"#).unwrap(), Metadata::default());
}

#[test]
fn the_stored_form_stays_as_it_is() {
    let metadata = followed().metadata;
    // One member a line, for the reader.
    insta::assert_snapshot!(metadata.to_json().replace(",\"", ",\n\""), @r#"
    {"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "request_id":"req-1",
    "user_agent":"curl/8.14.1",
    "source_ip":"2001:db8::1",
    "tenant":"blue"}
    "#);
    assert_eq!(Metadata::from_json(&metadata.to_json()).unwrap(), metadata);
}

#[test]
fn unknown_fields_are_kept_with_every_digit() {
    let text =
        r#"{"request_id":"r","new":{"a":[1,null]},"tiny":5e-324,"odd":0.3333333333333333,"max":18446744073709551615}"#;
    assert_eq!(Metadata::from_json(text).unwrap().to_json(), text);
}

#[test]
fn malformed_metadata_is_an_error_with_its_cause() {
    for text in ["", "[]", "null", "{", r#"{"user_agent":1}"#, r#"{"source_ip":null,"source_ip":"x"}"#] {
        let error = Metadata::from_json(text).expect_err(text);
        assert!(matches!(error, Error::Metadata { .. }) && error.source().is_some(), "{text}");
    }
}
