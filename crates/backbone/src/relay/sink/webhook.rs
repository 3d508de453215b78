//! Records to a webhook, signed as Standard Webhooks says, with the checkpoint in a file.
//!
//! Each record is one POST to the one URL of the configuration, after the answer to the record before
//! it. The body is the value of the record, and the headers are:
//!
//! | header | holds |
//! |---|---|
//! | `webhook-id` | the event's id, percent-encoded and always the same: receivers tell repetitions by it |
//! | `webhook-timestamp` | when it is sent, in seconds since the Unix epoch |
//! | `webhook-signature` | `v1,` and the Base64 of the HMAC-SHA256 of id, timestamp and body |
//! | `content-type` | that of the record, or `application/json` |
//! | `tidings-topic`, `tidings-key` | topic and key of the record, percent-encoded |
//!
//! What becomes of an answer:
//!
//! | answer | then |
//! |---|---|
//! | 2xx | the next record is sent |
//! | 400, 413, 415, 422 | the receiver will not take this record: it becomes a dead letter |
//! | 410 | the receiver wants no more: the relay stops |
//! | any other, or none in time | the same record is sent again, after the relay's pause; nothing overtakes it |
//!
//! A redirect is not followed, since it could lead where the configuration did not mean to. After a crash
//! the records since the last checkpoint are sent again, so delivery is at least once and in order.

mod signature;

use std::{path::PathBuf, time::Duration};

use reqwest::{
    Client, Url,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde::Deserialize;

pub use self::signature::Secret;
use super::{
    WriteError,
    place::{Place, retriable},
};
use crate::{
    Clock, Error, Result,
    limits::WEBHOOK_RECORD_BYTES_MAX,
    relay::{DeadLetter, Record},
};

/// Where records are sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The receiver: `https://..`, or `http://..` where the network is trusted.
    pub url: String,
    /// The secret that is shared with the receiver: `whsec_` and the Base64 of 24 to 64 bytes.
    pub secret: Secret,
    /// The file of the checkpoint. Files beside it, with further endings, are the relay's too.
    pub file: PathBuf,
    /// Seconds that the receiver has to answer; 15.
    #[serde(default = "timeout_seconds")]
    pub timeout_seconds: u64,
}

fn timeout_seconds() -> u64 {
    15
}

/// Sends records to a webhook.
#[derive(Debug)]
pub struct Sink {
    url: Url,
    secret: Secret,
    client: Client,
    clock: Clock,
    place: Place,
    /// The ids that were delivered of the batch that is being written, in order.
    delivered: Vec<String>,
}

impl Sink {
    /// A sink for this receiver. Connects when it is first used.
    ///
    /// # Errors
    /// When the URL is none that records can be sent to.
    pub fn open(options: &Options, clock: Clock) -> Result<Self> {
        let url = checked(&options.url)?;
        let client = Client::builder()
            .timeout(Duration::from_secs(options.timeout_seconds.max(1)))
            .redirect(Policy::none())
            .build()
            .map_err(Error::Webhook)?;
        let place = Place::new(&options.file);
        Ok(Self { url, secret: options.secret.clone(), client, clock, place, delivered: Vec::new() })
    }

    pub(super) fn take_over(&mut self) -> Result<Option<String>> {
        self.delivered.clear();
        self.place.take_over()
    }

    pub(super) async fn write(
        &mut self,
        records: &[Record],
        dead: &[DeadLetter],
        checkpoint: &str,
    ) -> Result<(), WriteError> {
        if !self.place.is_held() {
            return Err(WriteError::Fenced);
        }
        for (index, record) in records.iter().enumerate() {
            // Encoded before it is signed: the receiver checks the signature over the header as it came.
            let id = text(signature::id(record).as_bytes());
            // The batch is being written again: what was answered is not sent again.
            if self.delivered.get(index) == Some(&id) {
                continue;
            }
            self.delivered.truncate(index);
            self.send(record, &id).await.map_err(|failure| failure.of(index))?;
            self.delivered.push(id);
        }
        let lines = dead.iter().map(|letter| {
            let line = serde_json::to_string(letter).map_err(Error::json("writing a dead letter"))?;
            Ok(line + "\n")
        });
        let lines = lines.collect::<Result<String>>().map_err(WriteError::Fatal)?;
        self.place.append_dead_letters(lines.as_bytes()).map_err(retriable)?;
        self.place.store(checkpoint).map_err(retriable)?;
        self.delivered.clear();
        Ok(())
    }

    async fn send(&self, record: &Record, id: &str) -> Result<(), Failure> {
        let body = record.value.clone().unwrap_or_default();
        let seconds = self.clock.now().0.div_euclid(1_000);
        let mut request = self
            .client
            .request(reqwest::Method::POST, self.url.clone())
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(id, seconds, &body))
            .header(CONTENT_TYPE, content_type(record))
            .header("tidings-topic", text(record.topic.as_bytes()));
        if let Some(key) = &record.key {
            request = request.header(HeaderName::from_static("tidings-key"), text(key));
        }
        let answer = request.body(body).send().await.map_err(|error| {
            // The URL may hold what is nobody's business.
            Failure::Later(Error::Webhook(error.without_url()))
        })?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status @ (400 | 413 | 415 | 422) => Err(Failure::Never(format!("the webhook answered {status}"))),
            status @ 410 => Err(Failure::Stop(Error::WebhookAnswer { status })),
            status => Err(Failure::Later(Error::WebhookAnswer { status })),
        }
    }

    pub(super) fn record_bytes_max(&self) -> usize {
        WEBHOOK_RECORD_BYTES_MAX
    }
}

/// Why one record was not delivered.
enum Failure {
    Later(Error),
    Never(String),
    Stop(Error),
}

impl Failure {
    fn of(self, record: usize) -> WriteError {
        match self {
            Self::Later(error) => WriteError::Retriable(error),
            Self::Never(reason) => WriteError::Refused { record, reason },
            Self::Stop(error) => WriteError::Fatal(error),
        }
    }
}

/// The URL, if it is one of HTTP without credentials: those would be in every log on the way.
pub(crate) fn checked(url: &str) -> Result<Url> {
    let wrong = |rule| Error::Event(tidings_event::Error::Option { name: "url".to_owned(), rule });
    let url = Url::parse(url).map_err(|_| wrong("is no URL"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
        return Err(wrong("begins with https:// or http:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a user or a password: the signature is what a receiver checks"));
    }
    Ok(url)
}

fn content_type(record: &Record) -> HeaderValue {
    let header = record.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let value = header.and_then(|(_, value)| HeaderValue::from_bytes(value.as_deref()?).ok());
    value.unwrap_or(HeaderValue::from_static("application/json"))
}

/// Bytes as the value of a header: what is not plain is percent-encoded.
fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, byte| {
        match byte {
            b'%' | 0..=b' ' | 0x7f.. => text.push_str(&format!("%{byte:02X}")),
            byte => text.push(char::from(*byte)),
        }
        text
    })
}
