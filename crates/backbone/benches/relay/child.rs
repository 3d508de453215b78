//! A process that only relays, so that memory and processor time are its own: this binary once more.

use std::{path::PathBuf, process::Stdio, time::Instant};

use serde::{Deserialize, Serialize};
use tidings_backbone::{
    Clock, kafka,
    relay::{
        Checkpoint, Format, Formatter, Options, Position, Relay, Route, Sink, Source, State,
        format::{CanalOptions, DebeziumOptions},
        sink,
    },
};
use tokio_util::sync::CancellationToken;

use crate::process::{Cpu, peak_kib};

/// The argument that makes this binary such a process.
pub(crate) const MODE: &str = "relay-alone";

/// What it does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) source: String,
    pub(crate) group: String,
    pub(crate) shape: Shape,
    pub(crate) records: u64,
    pub(crate) from: Position,
    pub(crate) to: Position,
    /// Brokers and prefix; without them, records are dropped once they are made.
    pub(crate) kafka: Option<(String, String)>,
}

/// Formats that are measured, as their defaults are but for the name of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    CloudEvents,
    Canal,
    Debezium,
}

impl Shape {
    fn route(self, prefix: &str) -> Route {
        let format = match self {
            Self::CloudEvents => Format::default(),
            Self::Canal => Format::Canal(CanalOptions::default()),
            Self::Debezium => {
                let topic = format!("{prefix}.debezium.${{routedByValue}}");
                let options = [("route.topic.replacement".to_owned(), topic)].into();
                Format::Debezium(DebeziumOptions { options })
            }
        };
        Route { format, ..Route::default() }
    }

    fn topic(self, kafka: &kafka::Options) -> String {
        match self {
            Self::CloudEvents => kafka.topic("relation"),
            Self::Canal => CanalOptions::default().topic,
            Self::Debezium => kafka.topic("debezium.relation"),
        }
    }

    pub(crate) fn formatter(self, prefix: &str, record_bytes_max: usize) -> Formatter {
        Formatter::new(&[self.route(prefix)], prefix, Clock::system(), record_bytes_max).unwrap()
    }
}

/// What it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) cpu: Cpu,
    pub(crate) peak_kib: f64,
}

impl Task {
    /// Runs it in a process of its own.
    pub(crate) async fn run(&self) -> Outcome {
        if let Some(kafka) = &self.kafka {
            begin_at(&options(kafka), self).await;
        }
        let binary: PathBuf = std::env::current_exe().unwrap();
        let mut command = tokio::process::Command::new(binary);
        command.arg(MODE).arg(serde_json::to_string(self).unwrap()).stderr(Stdio::inherit()).kill_on_drop(true);
        let answer = command.output().await.unwrap();
        assert!(answer.status.success(), "the relay alone has failed");
        serde_json::from_slice(&answer.stdout).unwrap()
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint::at(self.from.clone())
    }
}

/// Stores the checkpoint that the relay begins with.
async fn begin_at(kafka: &kafka::Options, task: &Task) {
    let mut sink = open(kafka, task);
    assert!(sink.take_over().await.unwrap().is_none());
    sink.write(&[], &[], &task.checkpoint()).await.unwrap();
}

pub(crate) fn options((brokers, prefix): &(String, String)) -> kafka::Options {
    kafka::Options {
        brokers: brokers.clone(),
        properties: std::collections::BTreeMap::new(),
        prefix: prefix.clone(),
        partitions: 12,
        replicas: 1,
    }
}

fn open(kafka: &kafka::Options, task: &Task) -> Sink {
    Sink::Kafka(Box::new(sink::kafka::Sink::open(kafka, &task.group, &[task.shape.topic(kafka)])))
}

/// The process itself.
pub(crate) async fn run(task: &str) {
    let task: Task = serde_json::from_str(task).unwrap();
    let outcome = match &task.kafka {
        Some(kafka) => whole(&task, &options(kafka)).await,
        None => reading(&task).await,
    };
    println!("{}", serde_json::to_string(&outcome).unwrap());
}

/// From being the active relay until all is acknowledged by the log.
async fn whole(task: &Task, kafka: &kafka::Options) -> Outcome {
    let sink = open(kafka, task);
    let formatter = task.shape.formatter(&kafka.prefix, sink.record_bytes_max());
    let options = Options::new(task.source.clone(), task.group.clone());
    let relay = Relay::new(options, formatter, sink, Clock::system()).unwrap();
    let (mut handle, shutdown) = (relay.handle(), CancellationToken::new());
    let running = tokio::spawn(relay.run(shutdown.clone()));
    handle.wait_for(|status| status.state != State::Standby).await.unwrap();
    let (start, cpu) = (Instant::now(), Cpu::of_this_process());
    let done = handle
        .wait_for(|status| status.records + status.dead >= task.records || status.state == State::Stopped)
        .await
        .unwrap();
    let outcome = outcome(start, cpu);
    assert_eq!((done.records, done.dead), (task.records, 0), "{done:?}");
    shutdown.cancel();
    running.await.unwrap().unwrap();
    outcome
}

/// From connecting until all records are made.
async fn reading(task: &Task) -> Outcome {
    let formatter = task.shape.formatter("bench", usize::MAX);
    let options = Options::new(task.source.clone(), task.group.clone());
    let (start, cpu) = (Instant::now(), Cpu::of_this_process());
    let mut source = Source::start(options, formatter, Some(task.checkpoint()), Clock::system()).unwrap();
    loop {
        let batch = source.next().await.unwrap();
        assert!(batch.dead.is_empty(), "{:?}", batch.dead);
        if has_passed(&batch.checkpoint.position, &task.to) {
            return outcome(start, cpu);
        }
    }
}

/// Whether a position is that of the end or behind it. Files are numbered, with zeros in front.
pub(crate) fn has_passed(position: &Position, end: &Position) -> bool {
    (&position.file, position.offset) >= (&end.file, end.offset)
}

fn outcome(start: Instant, before: Cpu) -> Outcome {
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, cpu: Cpu::of_this_process().since(before), peak_kib: peak_kib() }
}
