//! Lines of JSON on the standard output, which here is a file.

use std::fs::{self, File};

use tempfile::TempDir;
use tidings_backbone::relay::{
    DeadLetter, Record, WriteError,
    sink::{Sink, stdout},
};

use super::{checkpoint, numbered, record};

#[tokio::test]
async fn each_record_is_a_line_that_is_out_before_the_checkpoint_moves() {
    let folder = TempDir::new().unwrap();
    let (file, output) = (folder.path().join("checkpoint"), folder.path().join("output"));
    let mut sink = Sink::Stdout(Box::new(stdout::Sink::open(&file, File::create(&output).unwrap())));
    assert!(matches!(sink.write(&[], &[], &checkpoint(0)).await, Err(WriteError::Fenced)), "it never took over");
    assert_eq!(sink.take_over().await.unwrap(), None);
    let records = [
        record("shop.thing", "a", r#"{"n":1}"#),
        Record { value: None, key: Some(vec![0xff]), partition: Some(2), ..record("shop.thing", "", "x") },
    ];
    let letter = DeadLetter { reason: "no payload".to_owned(), ..DeadLetter::default() };
    sink.write(&records, &[letter], &checkpoint(1)).await.unwrap();
    insta::assert_snapshot!(fs::read_to_string(&output).unwrap(), @r#"
    {"topic":"shop.thing","partition":null,"key":"a","value":"{\"n\":1}","headers":{"content-type":"text/plain","absent":null},"timestamp_ms":1795965977123}
    {"topic":"shop.thing","partition":2,"key":{"base64":"/w=="},"value":null,"headers":{"content-type":"text/plain","absent":null},"timestamp_ms":1795965977123}
    {"topic":"relay-dead-letter","partition":null,"key":null,"value":"{\"reason\":\"no payload\",\"origin\":\"\",\"row\":{}}","headers":{},"timestamp_ms":null}
    "#);
    drop(sink);
    let mut sink = Sink::Stdout(Box::new(stdout::Sink::open(&file, std::io::sink())));
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(1)));
}

#[tokio::test]
async fn a_reader_that_is_gone_stops_the_relay_and_the_checkpoint_stays() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("checkpoint");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut sink = Sink::Stdout(Box::new(stdout::Sink::open(&file, writer)));
    sink.take_over().await.unwrap();
    let outcome = sink.write(&numbered("t", 0..1), &[], &checkpoint(1)).await;
    assert!(matches!(outcome, Err(WriteError::Fatal(_))), "{outcome:?}");
    assert_eq!(sink.take_over().await.unwrap(), None);
}
