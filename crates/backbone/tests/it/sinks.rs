//! Sinks on the servers they are made for. `scripts/services up kafka redis` starts them, and the
//! lines of `scripts/services env` say where they are.

mod append;
pub(crate) mod broker;
mod kafka;
mod options;
pub(crate) mod outage;
pub(crate) mod redis;
mod stdout;
pub(crate) mod webhook;

use std::{future::Future, pin::pin, sync::Arc, task::Poll};

use tidings_backbone::relay::{Checkpoint, Position, Record};

/// The address in an environment variable, or a failure that says how to set it.
fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/services up` and `eval \"$(scripts/services env)\"`")
    })
}

/// A checkpoint that is told from others by its offset.
fn checkpoint(offset: u64) -> Checkpoint {
    Checkpoint::at(Position { gtid: format!("0-1-{offset}"), file: "binlog.000001".to_owned(), offset })
}

fn record(topic: &str, key: &str, value: impl Into<String>) -> Record {
    let value: String = value.into();
    Record {
        topic: topic.into(),
        key: Some(key.as_bytes().to_vec()),
        headers: vec![("content-type".into(), Some(b"text/plain".to_vec())), ("absent".into(), None)],
        timestamp_ms: Some(1_795_965_977_123),
        event_id: Arc::from(value.as_str()),
        order_key: key.into(),
        value: Some(value.into_bytes()),
        partition: None,
        trace: None,
    }
}

fn numbered(topic: &str, numbers: std::ops::Range<usize>) -> Vec<Record> {
    numbers.map(|number| record(topic, &format!("key-{}", number % 7), number.to_string())).collect()
}

/// Polls a future some times without waiting for anything, then drops it. Answers whether it was cut
/// short. To a sink that is the same as an answer that never came.
async fn cut_short(future: impl Future, polls: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let poll = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if poll.is_ready() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}
