//! The sink for webhooks against a receiver of its own.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex},
};

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::STANDARD};
use tempfile::TempDir;
use tidings_backbone::{
    Clock,
    relay::{
        DeadLetter, Record, WriteError,
        sink::{Sink, webhook},
    },
};
use tidings_event::Timestamp;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{checkpoint, numbered, record};

/// A request as the receiver got it.
#[derive(Clone, Debug)]
struct Got {
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Answers with the statuses it was told, one after the other, then with 204.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Got>>>,
    statuses: Arc<Mutex<VecDeque<&'static str>>>,
    folder: TempDir,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?tenant=7", listener.local_addr().unwrap());
        let receiver = Self { url, got: Arc::default(), statuses: Arc::default(), folder: TempDir::new().unwrap() };
        let (got, statuses) = (receiver.got.clone(), receiver.statuses.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, got.clone(), statuses.clone()));
            }
        });
        receiver
    }

    pub(crate) fn answer(&self, statuses: &[&'static str]) {
        self.statuses.lock().unwrap().extend(statuses);
    }

    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("checkpoint")
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::Webhook(Box::new(webhook::Sink::open(&options(&self.url, &self.file()), clock()).unwrap()))
    }

    /// Checks the signatures of all that came as a receiver does it: over what came.
    pub(crate) fn verify_signatures(&self) {
        for got in &*self.got.lock().unwrap() {
            let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
            let mut signed =
                format!("{}.{}.", got.headers["webhook-id"], got.headers["webhook-timestamp"]).into_bytes();
            signed.extend(&got.body);
            let signature = STANDARD.decode(got.headers["webhook-signature"].strip_prefix("v1,").unwrap()).unwrap();
            hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), &signed, &signature).unwrap();
        }
    }

    /// The bodies that came, as JSON.
    pub(crate) fn bodies(&self) -> Vec<serde_json::Value> {
        self.got.lock().unwrap().iter().map(|got| serde_json::from_slice(&got.body).unwrap()).collect()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|got| got.headers["webhook-id"].clone()).collect()
    }
}

async fn serve(stream: TcpStream, got: Arc<Mutex<Vec<Got>>>, statuses: Arc<Mutex<VecDeque<&'static str>>>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|bytes| bytes > 0) {
        let path = line.split(' ').nth(1).unwrap().to_owned();
        let mut headers = HashMap::new();
        loop {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_owned(), value.to_owned());
        }
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        got.lock().unwrap().push(Got { path, headers, body });
        let status = statuses.lock().unwrap().pop_front().unwrap_or("204 No Content");
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        line.clear();
    }
}

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn options(url: &str, file: &Path) -> webhook::Options {
    let text = serde_json::json!({"url": url, "secret": SECRET, "file": file});
    serde_json::from_value(text).unwrap()
}

fn clock() -> Clock {
    Clock::manual(Timestamp(1_614_265_330_999))
}

#[tokio::test]
async fn a_record_is_a_signed_request() {
    let receiver = Receiver::start().await;
    let mut sink = receiver.sink();
    assert_eq!(sink.take_over().await.unwrap(), None);
    let record = Record {
        event_id: "msg_p5jXN8AQM9LWM0D4loKWxJek".into(),
        ..record("shop.thing", "k é", r#"{"test": 2432232314}"#)
    };
    sink.write(&[record], &[], &checkpoint(1)).await.unwrap();
    let got = receiver.got.lock().unwrap()[0].clone();
    assert_eq!(got.path, "/hook?tenant=7");
    assert_eq!(got.body, br#"{"test": 2432232314}"#);
    // The example of the Standard Webhooks specification.
    assert_eq!(got.headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(got.headers["webhook-timestamp"], "1614265330");
    assert_eq!(got.headers["content-type"], "text/plain");
    assert_eq!((&*got.headers["tidings-topic"], &*got.headers["tidings-key"]), ("shop.thing", "k%20%C3%A9"));
}

#[tokio::test]
async fn the_id_that_is_signed_is_the_id_that_is_sent() {
    let receiver = Receiver::start().await;
    let mut sink = receiver.sink();
    sink.take_over().await.unwrap();
    let record = Record { event_id: "50% é".into(), ..record("t", "k", "{}") };
    sink.write(&[record], &[], &checkpoint(1)).await.unwrap();
    let got = receiver.got.lock().unwrap()[0].clone();
    assert_eq!(got.headers["webhook-id"], "50%25%20%C3%A9");
    receiver.verify_signatures();
}

#[tokio::test]
async fn a_record_that_fails_is_sent_again_before_those_behind_it() {
    let receiver = Receiver::start().await;
    let mut sink = receiver.sink();
    sink.take_over().await.unwrap();
    receiver.answer(&["200 OK", "503 Unavailable", "429 Too Many", "302 Found", "200 OK"]);
    let records = numbered("t", 0..4);
    for _ in 0..3 {
        let outcome = sink.write(&records, &[], &checkpoint(1)).await;
        assert!(matches!(outcome, Err(WriteError::Retriable(_))), "{outcome:?}");
    }
    sink.write(&records, &[], &checkpoint(1)).await.unwrap();
    assert_eq!(receiver.ids(), ["0", "1", "1", "1", "1", "2", "3"]);
}

#[tokio::test]
async fn a_record_that_the_receiver_refuses_is_told_from_a_receiver_that_is_gone() {
    let receiver = Receiver::start().await;
    let mut sink = receiver.sink();
    sink.take_over().await.unwrap();
    receiver.answer(&["200 OK", "422 Unprocessable"]);
    let mut records = numbered("t", 0..3);
    let outcome = sink.write(&records, &[], &checkpoint(1)).await;
    assert!(matches!(outcome, Err(WriteError::Refused { record: 1, .. })), "{outcome:?}");
    let letter = DeadLetter::of_record(&records.remove(1), "422".to_owned());
    sink.write(&records, &[letter], &checkpoint(1)).await.unwrap();
    assert_eq!(receiver.ids(), ["0", "1", "2"]);
    let letters = std::fs::read_to_string(receiver.folder.path().join("checkpoint.dead-letters.jsonl")).unwrap();
    assert_eq!(letters.lines().count(), 1);
    assert!(letters.contains(r#""event_id":"1""#), "{letters}");

    receiver.answer(&["410 Gone"]);
    let outcome = sink.write(&numbered("t", 3..4), &[], &checkpoint(2)).await;
    assert!(matches!(outcome, Err(WriteError::Fatal(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_checkpoint_survives_and_one_relay_of_a_machine_holds_it() {
    let receiver = Receiver::start().await;
    let mut sink = receiver.sink();
    sink.take_over().await.unwrap();
    sink.write(&numbered("t", 0..2), &[], &checkpoint(1)).await.unwrap();
    let mut second = receiver.sink();
    assert!(second.take_over().await.unwrap_err().is_transient());
    assert!(matches!(second.write(&[], &[], &checkpoint(9)).await, Err(WriteError::Fenced)));
    drop(sink);
    assert_eq!(second.take_over().await.unwrap(), Some(checkpoint(1)));
}

#[tokio::test]
async fn a_receiver_that_is_away_is_waited_for_and_its_url_is_not_told() {
    let folder = TempDir::new().unwrap();
    let url = "http://127.0.0.1:1/secret-path";
    let sink = webhook::Sink::open(&options(url, &folder.path().join("checkpoint")), clock()).unwrap();
    let mut sink = Sink::Webhook(Box::new(sink));
    sink.take_over().await.unwrap();
    let Err(WriteError::Retriable(error)) = sink.write(&numbered("t", 0..1), &[], &checkpoint(1)).await else {
        panic!("nobody listens there")
    };
    assert!(!tidings_backbone::Error::chain(&error).contains("secret-path"), "{error:?}");
}

#[test]
fn only_a_plain_url_of_http_is_taken() {
    for url in ["file:///etc/passwd", "ftp://host/", "nonsense", "http://user:password@host/", "https://user@host/"] {
        assert!(webhook::Sink::open(&options(url, Path::new("checkpoint")), clock()).is_err(), "{url}");
    }
}
