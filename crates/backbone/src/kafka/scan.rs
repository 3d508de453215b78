//! Reading a piece of a topic from outside, whoever consumes it: from one offset to another, what is committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use rdkafka::{Message, consumer::BaseConsumer, message::BorrowedMessage};
use tidings_event::{Event, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{
    Options, message,
    onlooker::{Onlooker, Said, read_topic},
};
use crate::{
    Error, Result,
    limits::KAFKA_SCAN_KIB_MAX,
    log::{Offset, Part},
};

/// The offsets to read in each part, the first and the last.
pub(crate) type Ranges = BTreeMap<Part, (i64, i64)>;

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) part: Part,
    pub(crate) offset: Offset,
    /// When it was appended, or made.
    pub(crate) recorded_at: Option<Timestamp>,
    /// The event; nothing where it is none.
    pub(crate) event: Option<Event>,
}

/// Reads all committed records of these ranges, in the order of each part, and hands them to `each` with what it has
/// gathered. What is read ahead is bounded, and nothing is kept. It ends when nobody waits for it any more.
pub(crate) async fn scan<S: Send + 'static>(
    options: Options,
    ranges: Ranges,
    mut gathered: S,
    each: impl Fn(&mut S, Scanned) + Send + 'static,
) -> Result<S> {
    let ending = CancellationToken::new();
    let _ends_with_this = ending.clone().drop_guard();
    let reading = move || {
        let ahead = KAFKA_SCAN_KIB_MAX.to_string();
        let settings = [("queued.max.messages.kbytes", ahead.as_str())];
        let consumer = Onlooker::new(Arc::new(options), "scan", &[]).connect(&settings)?;
        let topics: BTreeSet<Arc<str>> = ranges.keys().map(|part| Arc::clone(&part.topic)).collect();
        for topic in topics {
            let of_topic = ranges.iter().filter(|(part, _)| part.topic == topic);
            let wanted = of_topic.map(|(part, range)| (part.number, *range)).collect();
            scan_topic(&consumer, &topic, wanted, &ending, |scanned| each(&mut gathered, scanned))?;
        }
        Ok(gathered)
    };
    tokio::task::spawn_blocking(reading)
        .await
        .unwrap_or_else(|error| Err(Error::Invariant { message: format!("reading topics ended: {error}") }))
}

fn scan_topic(
    consumer: &BaseConsumer,
    topic: &Arc<str>,
    mut wanted: BTreeMap<i32, (i64, i64)>,
    ending: &CancellationToken,
    mut each: impl FnMut(Scanned),
) -> Result<()> {
    wanted.retain(|_, (first, last)| first <= last);
    let beginnings = wanted.iter().map(|(number, (first, _))| (*number, *first)).collect();
    let goes_on = || if ending.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let take = |message: &BorrowedMessage<'_>| {
        let (number, offset) = (message.partition(), message.offset());
        let last = wanted.get(&number).map_or(i64::MIN, |(_, last)| *last);
        if offset <= last {
            each(Scanned {
                part: Part { topic: Arc::clone(topic), number },
                offset: Offset(offset),
                recorded_at: message.timestamp().to_millis().map(Timestamp),
                event: message::read(message).ok().map(|recorded| recorded.event),
            });
        }
        // What is appended meanwhile is not read.
        ControlFlow::Continue(if offset >= last { Said::Leave } else { Said::More })
    };
    read_topic(consumer, topic, &beginnings, "reading a topic once more", goes_on, take).map(drop)
}
