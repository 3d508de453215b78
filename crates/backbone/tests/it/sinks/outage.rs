//! A broker that is away. It is a server of its own, since other tests need theirs.

use std::process::Command;

use tidings_backbone::relay::WriteError;

use super::{
    broker::{numbers, options, sink},
    checkpoint, numbered,
};

/// A Kafka of one's own, removed in the end.
pub(crate) struct Server {
    set: &'static str,
}

impl Server {
    /// The server, running, and its address.
    pub(crate) fn start(set: &'static str) -> (Self, String) {
        let server = Self { set };
        server.say(&["up", "kafka"]);
        let lines = server.say(&["env"]);
        let line = lines.lines().find(|line| line.contains("TIDINGS_TEST_KAFKA=")).unwrap();
        (server, line.split_once('=').unwrap().1.to_owned())
    }

    pub(crate) fn say(&self, arguments: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services");
        let output = Command::new(script).args(arguments).args(["--set", self.set]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.say(&["down", "--wipe", "kafka"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_met_a_dead_broker_is_written_once_when_it_is_back() {
    let (server, address) = Server::start("sinks");
    let options = options(address);
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    sink.write(&numbered(&topic, 0..100), &[], &checkpoint(1)).await.unwrap();

    for (round, stop, start) in [(1, "kill", "up"), (2, "pause", "resume")] {
        server.say(&[stop, "kafka"]);
        let records = numbered(&topic, round * 100..round * 100 + 100);
        let next = checkpoint(u64::try_from(round).unwrap() + 1);
        let outcome = sink.write(&records, &[], &next).await;
        assert!(matches!(outcome, Err(WriteError::Retriable(_))), "{stop}: {outcome:?}");
        server.say(&[start, "kafka"]);
        let mut outcome = sink.write(&records, &[], &next).await;
        for _ in 0..10 {
            if !matches!(outcome, Err(WriteError::Retriable(_))) {
                break;
            }
            outcome = sink.write(&records, &[], &next).await;
        }
        outcome.unwrap();
    }
    assert_eq!(numbers(&options, &topic), (0..300).collect::<Vec<_>>());
    assert_eq!(sink.take_over().await.unwrap(), Some(checkpoint(3)));
}
