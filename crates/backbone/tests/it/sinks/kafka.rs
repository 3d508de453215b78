//! The transactional sink on a real broker.

use std::time::Duration;

use tidings_backbone::relay::{DeadLetter, Record, WriteError};

use super::{
    broker::{committed, limit, local, numbers, sink},
    checkpoint, cut_short, numbered, record,
};

#[tokio::test]
async fn records_dead_letters_and_checkpoint_are_one_transaction() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    assert_eq!(sink.take_over().await.unwrap(), None);
    let letter = DeadLetter { reason: "no payload".to_owned(), key: Some("k".to_owned()), ..DeadLetter::default() };
    let tombstone = Record { value: None, ..record(&topic, "gone", "") };
    let placed = Record { partition: Some(2), key: None, ..record(&topic, "", "placed") };
    sink.write(&[record(&topic, "a", "1"), tombstone, placed], &[letter], &checkpoint(4)).await.unwrap();

    let found = committed(&options, &topic);
    assert_eq!(found.len(), 3);
    let first = found.iter().find(|found| found.key.as_deref() == Some(b"a")).unwrap();
    assert_eq!(first.value.as_deref(), Some("1"));
    assert_ne!(first.timestamp_ms, Some(1_795_965_977_123), "the topic of events has the times of the log");
    let headers = [("content-type".to_owned(), Some(b"text/plain".to_vec())), ("absent".to_owned(), None)];
    assert_eq!(first.headers, headers);
    assert!(found.iter().any(|found| found.key.as_deref() == Some(b"gone") && found.value.is_none()));
    assert!(found.iter().any(|found| found.partition == 2 && found.value.as_deref() == Some("placed")));
    let dead = committed(&options, &options.dead_letter_topic());
    assert!(dead[0].value.as_ref().unwrap().contains("no payload") && dead[0].key.as_deref() == Some(b"k"));
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(4)));
}

#[tokio::test]
async fn keys_go_where_the_producers_of_java_send_them() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    // The hashes are those of Kafka's own tests of `Utils.murmur2`.
    let known: [(&str, i32); 5] = [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ];
    let records: Vec<Record> = known.iter().map(|(key, _)| record(&topic, key, *key)).collect();
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    let found = committed(&options, &topic);
    for (key, hash) in known {
        let place = found.iter().find(|found| found.value.as_deref() == Some(key)).unwrap().partition;
        assert_eq!(place, (hash & i32::MAX) % options.partitions, "{key}");
    }
}

#[tokio::test]
async fn a_writer_that_stops_half_way_leaves_nothing_behind() {
    let options = local();
    let topic = options.topic("thing");
    let mut first = sink(&options);
    first.take_over().await.unwrap();
    first.write(&numbered(&topic, 0..10), &[], &checkpoint(1)).await.unwrap();
    // Several turns hand records over; it is dropped before the commit.
    assert!(cut_short(first.write(&numbered(&topic, 10..2_000), &[], &checkpoint(2)), 3).await);
    let mut second = sink(&options);
    assert_eq!(second.take_over().await.unwrap(), Some(checkpoint(1)));
    assert_eq!(numbers(&options, &topic), (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn only_the_newer_of_two_sinks_can_write() {
    let options = local();
    let topic = options.topic("thing");
    let mut older = sink(&options);
    let mut newer = sink(&options);
    assert!(matches!(older.write(&[], &[], &checkpoint(0)).await, Err(WriteError::Fenced)), "it never took over");
    older.take_over().await.unwrap();
    older.write(&numbered(&topic, 0..1), &[], &checkpoint(1)).await.unwrap();
    assert_eq!(newer.take_over().await.unwrap(), Some(checkpoint(1)));
    for _ in 0..2 {
        let stale = older.write(&numbered(&topic, 1..2), &[], &checkpoint(2)).await;
        assert!(matches!(stale, Err(WriteError::Fenced)), "{stale:?}");
    }
    newer.write(&numbered(&topic, 2..3), &[], &checkpoint(3)).await.unwrap();
    assert_eq!(numbers(&options, &topic), [0, 2]);
    assert_eq!(older.take_over().await.unwrap(), Some(checkpoint(3)));
    older.write(&numbered(&topic, 3..4), &[], &checkpoint(4)).await.unwrap();
    assert!(matches!(newer.write(&[], &[], &checkpoint(5)).await, Err(WriteError::Fenced)));
}

/// A write that is cut short at a random moment, also while its commit is on the way, is the same to the
/// sink as an answer that never came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_outcome_is_unknown_is_written_again_exactly_once() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let mut cut_short = 0;
    for batch in 0..40_u64 {
        let first = usize::try_from(batch).unwrap() * 20;
        let records = numbered(&topic, first..first + 20);
        let patience = Duration::from_micros(batch * 700);
        let outcome = tokio::time::timeout(patience, sink.write(&records, &[], &checkpoint(batch))).await;
        cut_short += u32::from(outcome.is_err());
        if outcome.is_err() {
            sink.write(&records, &[], &checkpoint(batch)).await.unwrap();
        }
    }
    assert!(cut_short > 5, "only {cut_short} batches were cut short");
    assert_eq!(numbers(&options, &topic), (0..800).collect::<Vec<_>>());
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(39)));
}

#[tokio::test]
async fn a_record_over_the_limit_is_refused_and_the_rest_is_written_without_it() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let large = "x".repeat(sink.record_bytes_max() + 1);
    let mut records = vec![record(&topic, "a", "1"), record(&topic, "b", large), record(&topic, "c", "3")];
    let refused = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(refused, Err(WriteError::Refused { record: 1, .. })), "{refused:?}");
    assert_eq!(committed(&options, &topic).len(), 0);
    records.remove(1);
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    assert_eq!(numbers(&options, &topic), [1, 3]);
}

/// The broker takes less than the client was told.
#[tokio::test]
async fn the_record_that_the_broker_finds_too_large_is_the_one_that_is_refused() {
    let mut options = local();
    options.properties.insert("message.max.bytes".to_owned(), "3000000".to_owned());
    options.properties.insert("compression.type".to_owned(), "none".to_owned());
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let mut records = numbered(&topic, 0..10);
    records[4].value = Some(vec![b'x'; 2_000_000]);
    let refused = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(refused, Err(WriteError::Refused { record: 4, .. })), "{refused:?}");
    records.remove(4);
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    assert_eq!(numbers(&options, &topic).len(), 9);
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(1)));
}

#[tokio::test]
async fn no_record_is_refused_because_its_batch_was_too_large() {
    let mut options = local();
    options.partitions = 1;
    options.properties.insert("compression.type".to_owned(), "none".to_owned());
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    limit(&options, &topic, 2_000).await;
    let mut records: Vec<Record> = (0..500).map(|number| record(&topic, "k", format!("{number:0100}"))).collect();
    // The broker says that it has a new setting a moment before it keeps to it.
    let (mut written, mut outcome) = (0, Ok(()));
    while outcome.is_ok() && written < 100 {
        written += 1;
        outcome = sink.write(&records, &[], &checkpoint(written)).await;
    }
    assert!(matches!(outcome, Err(WriteError::Retriable(_))), "{outcome:?}");
    sink.write(&records, &[], &checkpoint(written)).await.unwrap();
    let times = usize::try_from(written).unwrap();
    assert_eq!(numbers(&options, &topic), (0..500 * times).map(|place| place / times).collect::<Vec<_>>());

    records[7].value = Some(vec![b'7'; 3_000]);
    let outcome = sink.write(&records, &[], &checkpoint(written + 1)).await;
    assert!(matches!(outcome, Err(WriteError::Refused { record: 7, .. })), "{outcome:?}");
}
