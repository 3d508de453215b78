//! Several batches in one transaction of Kafka.

use tidings_backbone::{
    Clock,
    kafka::topics::{self, Purpose},
    relay::{Record, Sink, WriteError},
};

use super::{
    broker::{committed, local, numbers, sink, visible},
    checkpoint, numbered, record,
};

#[tokio::test]
async fn batches_become_visible_together_with_the_one_that_is_written() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    for batch in 0..5 {
        sink.append(&numbered(&topic, batch * 100..(batch + 1) * 100), &[]).await.unwrap();
    }
    assert_eq!(visible(&options, &topic), []);
    sink.write(&numbered(&topic, 500..600), &[], &checkpoint(6)).await.unwrap();
    assert_eq!(numbers(&options, &topic), (0..600).collect::<Vec<_>>());
    sink.append(&numbered(&topic, 600..700), &[]).await.unwrap();
    sink.write(&[], &[], &checkpoint(7)).await.unwrap();
    assert_eq!(numbers(&options, &topic), (0..700).collect::<Vec<_>>());
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(7)));
}

#[tokio::test]
async fn a_topic_that_is_missing_voids_what_was_appended_before_and_is_written_to_once_it_is_there() {
    let options = local();
    let (topic, missing) = (options.topic("thing"), options.topic("new"));
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    sink.append(&numbered(&topic, 0..10), &[]).await.unwrap();
    let void = sink.append(&numbered(&missing, 10..20), &[]).await;
    assert!(matches!(&void, Err(WriteError::Void(error)) if error.to_string().contains(&missing)), "{void:?}");
    assert_eq!(sink.take_over().await.unwrap(), None);
    let mut records = numbered(&topic, 0..10);
    records.extend(numbered(&missing, 10..20));
    let waits = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(&waits, Err(WriteError::Retriable(error)) if error.to_string().contains(&missing)), "{waits:?}");
    topics::ensure(&options, &[(missing.clone(), Purpose::Events)]).await.unwrap();
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    assert_eq!(numbers(&options, &topic), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers(&options, &missing), (10..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_was_appended_and_not_written_is_gone_after_the_next_take_over() {
    let options = local();
    let topic = options.topic("thing");
    let mut older = sink(&options);
    older.take_over().await.unwrap();
    older.write(&numbered(&topic, 0..10), &[], &checkpoint(1)).await.unwrap();
    older.append(&numbered(&topic, 10..20), &[]).await.unwrap();
    let mut newer = sink(&options);
    assert_eq!(newer.take_over().await.unwrap(), Some(checkpoint(1)));
    let stale = older.write(&numbered(&topic, 20..30), &[], &checkpoint(2)).await;
    assert!(matches!(stale, Err(WriteError::Fenced)), "{stale:?}");
    newer.write(&numbered(&topic, 10..30), &[], &checkpoint(2)).await.unwrap();
    assert_eq!(numbers(&options, &topic), (0..30).collect::<Vec<_>>());
}

/// Appends a batch that the broker refuses behind one that it takes, and answers how that came out.
async fn spoiled(sink: &mut Sink, topic: &str) -> Result<(), WriteError> {
    let large = Record { value: Some(vec![b'x'; 2_000_000]), ..record(topic, "large", "") };
    sink.append(&numbered(topic, 0..10), &[]).await?;
    sink.append(&[large], &[]).await?;
    sink.write(&numbered(topic, 11..20), &[], &checkpoint(1)).await
}

/// The first batch is not kept by the sink, so it cannot be told to write the others without it.
#[tokio::test]
async fn a_transaction_that_fails_is_void_until_the_sink_takes_over_again() {
    let mut options = local();
    options.properties.insert("message.max.bytes".to_owned(), "3000000".to_owned());
    options.properties.insert("compression.type".to_owned(), "none".to_owned());
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let outcome = spoiled(&mut sink, &topic).await;
    assert!(matches!(outcome, Err(WriteError::Void(_))), "{outcome:?}");
    for _ in 0..2 {
        let outcome = sink.write(&numbered(&topic, 20..30), &[], &checkpoint(2)).await;
        assert!(matches!(outcome, Err(WriteError::Void(_))), "{outcome:?}");
    }
    assert_eq!(sink.take_over().await.unwrap(), None);
    assert_eq!(committed(&options, &topic).len(), 0);
    sink.write(&numbered(&topic, 0..30), &[], &checkpoint(3)).await.unwrap();
    assert_eq!(numbers(&options, &topic), (0..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_record_for_a_partition_that_is_not_there_is_refused_alone() {
    let options = local();
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let mut records = numbered(&topic, 0..10);
    records[6].partition = Some(99);
    let refused = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(refused, Err(WriteError::Refused { record: 6, .. })), "{refused:?}");
    records.remove(6);
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    assert_eq!(numbers(&options, &topic).len(), 9);
}

/// Brokers refuse times that are more than an hour ahead, and local time stored as UTC may be.
#[tokio::test]
async fn a_record_from_tomorrow_is_written_with_the_time_of_today() {
    let options = local();
    // A topic that somebody else has made, with the times of its producers.
    let topic = format!("{}.strangers", options.prefix);
    topics::ensure(&options, &[(topic.clone(), Purpose::DeadLetters)]).await.unwrap();
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    let now = Clock::system().now().0;
    let tomorrow = Record { timestamp_ms: Some(now + 86_400_000), ..record(&topic, "a", "1") };
    let yesterday = Record { timestamp_ms: Some(now - 86_400_000), ..record(&topic, "a", "2") };
    sink.write(&[tomorrow, yesterday], &[], &checkpoint(1)).await.unwrap();
    let times: Vec<_> = committed(&options, &topic).iter().map(|found| found.timestamp_ms.unwrap() - now).collect();
    assert!((0..60_000).contains(&times[0]), "{times:?}");
    assert_eq!(times[1], -86_400_000);
}
