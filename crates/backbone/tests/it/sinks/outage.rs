//! A broker that is away. It is a server of its own, since other tests need theirs.

use std::process::Command;

use tidings_backbone::relay::WriteError;

use super::{
    broker::{numbers, options, sink},
    checkpoint, numbered,
};

const SET: &str = "sinks";

fn services(arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services");
    let output = Command::new(script).args(arguments).args(["--set", SET]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

struct Server;

impl Server {
    fn start() -> (Self, String) {
        services(&["up", "kafka"]);
        let lines = services(&["env"]);
        let line = lines.lines().find(|line| line.contains("TIDINGS_TEST_KAFKA=")).unwrap();
        (Self, line.split_once('=').unwrap().1.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        services(&["down", "--wipe", "kafka"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_met_a_dead_broker_is_written_once_when_it_is_back() {
    let (_server, address) = Server::start();
    let options = options(address);
    let topic = options.topic("thing");
    let mut sink = sink(&options);
    sink.take_over().await.unwrap();
    sink.write(&numbered(&topic, 0..100), &[], &checkpoint(1)).await.unwrap();

    for (round, stop, start) in [(1, "kill", "up"), (2, "pause", "resume")] {
        services(&[stop, "kafka"]);
        let records = numbered(&topic, round * 100..round * 100 + 100);
        let next = checkpoint(u64::try_from(round).unwrap() + 1);
        let outcome = sink.write(&records, &[], &next).await;
        assert!(matches!(outcome, Err(WriteError::Retriable(_))), "{stop}: {outcome:?}");
        services(&[start, "kafka"]);
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
