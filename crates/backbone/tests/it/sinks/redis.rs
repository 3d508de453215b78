//! The sink for Redis Streams on a real server.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use redis::{AsyncCommands, aio::MultiplexedConnection, streams::StreamRangeReply};
use tidings_backbone::relay::{
    DeadLetter, Record, WriteError,
    sink::{Sink, redis as sink},
};

use super::{address, checkpoint, cut_short, numbered, record};

/// A part of the server for one test.
pub(crate) struct Part {
    pub(crate) options: sink::Options,
    connection: MultiplexedConnection,
    topic: String,
}

impl Part {
    pub(crate) async fn new() -> Self {
        static TESTS: AtomicU64 = AtomicU64::new(0);
        let (process, test) = (std::process::id(), TESTS.fetch_add(1, Ordering::SeqCst));
        let prefix = format!("test-sinks-{process}-{test}");
        let options =
            sink::Options { url: address("TIDINGS_TEST_REDIS"), prefix: prefix.clone(), stream_entries_max: 0 };
        let client = redis::Client::open(options.url.as_str()).unwrap();
        let mut part = Self {
            options,
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            topic: format!("{prefix}.thing"),
        };
        part.clear().await;
        part
    }

    pub(crate) async fn clear(&mut self) {
        let keys: Vec<String> = self.connection.keys(format!("{}*", self.options.prefix)).await.unwrap();
        for key in keys {
            let _: () = self.connection.del(key).await.unwrap();
        }
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::Redis(Box::new(sink::Sink::open(&self.options, "group").unwrap()))
    }

    pub(crate) async fn entries(&mut self, stream: &str) -> Vec<HashMap<String, Vec<u8>>> {
        let reply: StreamRangeReply = self.connection.xrange_all(stream).await.unwrap();
        let fields = |map: HashMap<String, redis::Value>| {
            map.into_iter().map(|(name, value)| (name, redis::from_redis_value::<Vec<u8>>(value).unwrap())).collect()
        };
        reply.ids.into_iter().map(|entry| fields(entry.map)).collect()
    }

    async fn numbers(&mut self) -> Vec<usize> {
        let topic = self.topic.clone();
        let entries = self.entries(&topic).await;
        entries.iter().map(|entry| String::from_utf8(entry["value"].clone()).unwrap().parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn records_dead_letters_and_checkpoint_are_one_step() {
    let mut part = Part::new().await;
    let mut sink = part.sink();
    assert_eq!(sink.take_over().await.unwrap(), None);
    let records = [
        record(&part.topic, "a", "1"),
        Record { value: None, partition: Some(2), ..record(&part.topic, "b", "2") },
        Record { topic: format!("{}.other", part.options.prefix).into(), ..record("", "é\0", "3") },
        Record { topic: part.topic.as_str().into(), ..Record::default() },
    ];
    let letter = DeadLetter { reason: "no payload".to_owned(), ..DeadLetter::default() };
    sink.write(&records, &[letter], &checkpoint(1)).await.unwrap();

    let entries = part.entries(&part.topic.clone()).await;
    let fields = |pairs: &[(&str, &str)]| -> HashMap<String, Vec<u8>> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    };
    let header = ("header:content-type", "text/plain");
    assert_eq!(entries[0], fields(&[("key", "a"), ("value", "1"), ("id", "1"), header]));
    assert_eq!(entries[1], fields(&[("key", "b"), ("id", "2"), ("partition", "2"), header]));
    assert_eq!(entries[2], fields(&[("id", "")]));
    let other = part.entries(&format!("{}.other", part.options.prefix)).await;
    assert_eq!(other[0]["key"], "é\0".as_bytes());
    let dead = part.entries(&format!("{}.relay-dead-letter", part.options.prefix)).await;
    assert!(String::from_utf8_lossy(&dead[0]["value"]).contains("no payload"));
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(1)));
    part.clear().await;
}

#[tokio::test]
async fn only_the_newer_of_two_sinks_can_write() {
    let mut part = Part::new().await;
    let (mut older, mut newer) = (part.sink(), part.sink());
    assert!(matches!(older.write(&[], &[], &checkpoint(0)).await, Err(WriteError::Fenced)), "it never took over");
    older.take_over().await.unwrap();
    older.write(&numbered(&part.topic, 0..1), &[], &checkpoint(1)).await.unwrap();
    assert_eq!(newer.take_over().await.unwrap(), Some(checkpoint(1)));
    for _ in 0..2 {
        let stale = older.write(&numbered(&part.topic, 1..2), &[], &checkpoint(2)).await;
        assert!(matches!(stale, Err(WriteError::Fenced)), "{stale:?}");
    }
    newer.write(&numbered(&part.topic, 2..3), &[], &checkpoint(3)).await.unwrap();
    assert_eq!(part.numbers().await, [0, 2]);
    assert_eq!(older.take_over().await.unwrap(), Some(checkpoint(3)));
    assert!(matches!(newer.write(&[], &[], &checkpoint(5)).await, Err(WriteError::Fenced)));
    part.clear().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_outcome_is_unknown_is_written_again_exactly_once() {
    let mut part = Part::new().await;
    let mut sink = part.sink();
    sink.take_over().await.unwrap();
    let mut unknown = 0;
    for batch in 0..200_u64 {
        let first = usize::try_from(batch).unwrap() * 20;
        let records = numbered(&part.topic, first..first + 20);
        let polls = first / 20 % 10;
        if cut_short(sink.write(&records, &[], &checkpoint(batch)), polls).await {
            unknown += 1;
            sink.write(&records, &[], &checkpoint(batch)).await.unwrap();
        }
    }
    assert!(unknown > 50, "only {unknown} batches were cut short");
    assert_eq!(part.numbers().await, (0..4_000).collect::<Vec<_>>());
    part.clear().await;
}

#[tokio::test]
async fn another_batch_after_an_unknown_outcome_is_refused_rather_than_lost() {
    let mut part = Part::new().await;
    let mut sink = part.sink();
    sink.take_over().await.unwrap();
    assert!(cut_short(sink.write(&numbered(&part.topic, 0..1), &[], &checkpoint(1)), 1).await);
    while part.numbers().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let outcome = sink.write(&numbered(&part.topic, 5..6), &[], &checkpoint(2)).await;
    assert!(matches!(outcome, Err(WriteError::Fenced)), "{outcome:?}");
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(1)));
    assert_eq!(part.numbers().await, [0]);
    part.clear().await;
}

#[tokio::test]
async fn a_key_that_is_no_stream_fails_before_anything_is_written() {
    let mut part = Part::new().await;
    let mut sink = part.sink();
    sink.take_over().await.unwrap();
    let taken = format!("{}.taken", part.options.prefix);
    let _: () = part.connection.set(&taken, "text").await.unwrap();
    let records = [record(&part.topic, "a", "1"), record(&taken, "b", "2")];
    let outcome = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(outcome, Err(WriteError::Fatal(_))), "{outcome:?}");
    assert!(part.numbers().await.is_empty());
    assert_eq!(sink.take_over().await.unwrap(), None);
    part.clear().await;
}

#[tokio::test]
async fn a_stream_keeps_about_as_many_entries_as_it_is_told() {
    let mut part = Part::new().await;
    part.options.stream_entries_max = 100;
    let mut sink = part.sink();
    sink.take_over().await.unwrap();
    for batch in 0..10 {
        sink.write(&numbered(&part.topic, batch * 100..batch * 100 + 100), &[], &checkpoint(1)).await.unwrap();
    }
    let left = part.numbers().await;
    assert!((100..400).contains(&left.len()), "{}", left.len());
    assert_eq!(left.last(), Some(&999));
    part.clear().await;
}

#[tokio::test]
async fn a_server_that_lost_everything_is_noticed() {
    let mut part = Part::new().await;
    let mut sink = part.sink();
    sink.take_over().await.unwrap();
    sink.write(&numbered(&part.topic, 0..1), &[], &checkpoint(1)).await.unwrap();
    part.clear().await;
    let outcome = sink.write(&numbered(&part.topic, 1..2), &[], &checkpoint(2)).await;
    assert!(matches!(outcome, Err(WriteError::Fenced)), "{outcome:?}");
    assert_eq!(sink.take_over().await.unwrap(), None);
    part.clear().await;
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let options =
        sink::Options { url: "redis://127.0.0.1:1".to_owned(), prefix: "test".to_owned(), stream_entries_max: 0 };
    let mut sink = sink::Sink::open(&options, "group").map(|sink| Sink::Redis(Box::new(sink))).unwrap();
    assert!(sink.take_over().await.unwrap_err().is_transient());
    assert!(!format!("{options:?}").contains("redis://"), "an address may hold a password");
}
