//! The relay alone: an outbox table of a stranger's, and a file that describes it.

use std::{process::Stdio, time::Duration};

use tidings_testkit::{
    Process,
    database::{Database, Engine, Place, say},
    on_every_server,
    process::Signal,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

on_every_server!(rows_of_a_strangers_table_come_once_each_on_the_standard_output);

/// Longest time a test waits for a line before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

const TABLE: &str = "CREATE TABLE happenings (
    no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, id CHAR(36) NOT NULL, aggregatetype VARCHAR(64) NOT NULL,
    aggregateid VARCHAR(64) NOT NULL, type VARCHAR(64) NOT NULL, payload TEXT NOT NULL
) DEFAULT CHARACTER SET utf8mb4";

pub(super) struct Relay {
    pub(super) process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Relay {
    pub(super) fn start(database: &Database, config: &str) -> Self {
        let file = database.folder.path().join("relay.toml");
        std::fs::write(&file, config).unwrap();
        let mut process = Command::new(crate::BINARY)
            .arg("relay")
            .arg("--config")
            .arg(&file)
            .current_dir(database.folder.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    pub(super) async fn next(&mut self) -> serde_json::Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("no line came");
        serde_json::from_str(&line.unwrap().expect("the relay has ended")).unwrap()
    }
}

fn insert(database: &str, number: u32) -> String {
    format!(
        "INSERT INTO {database}.happenings (id, aggregatetype, aggregateid, type, payload) VALUES \
         ('0190e2c4-0000-7000-8000-{number:012}', 'order', 'o{number}', 'OrderMade', '{{\"n\":{number},\"e\":\"😀\"}}')"
    )
}

async fn rows_of_a_strangers_table_come_once_each_on_the_standard_output(engine: Engine) {
    let database = Database::new(engine).await;
    let Place::Url(url) = &database.place else { unreachable!("a server has an address") };
    let (server, name) = url.rsplit_once('/').unwrap();
    say(url, TABLE.to_owned()).await.unwrap();
    say(server, insert(name, 1)).await.unwrap();
    let config = format!(
        r#"
        source = "{url}"
        group = "{name}"
        tables = [{{ name = "happenings", columns = {{ seq = "no" }} }}]
        sink = {{ kind = "stdout", file = "relay.checkpoint" }}
        [[routes]]
        format = {{ kind = "debezium" }}
        "#
    );
    let mut relay = Relay::start(&database, &config);
    let first = relay.next().await;
    assert_eq!((first["topic"].as_str(), first["key"].as_str()), (Some("outbox.event.order"), Some("o1")));
    assert_eq!(first["value"], r#"{"n":1,"e":"😀"}"#);
    say(server, insert(name, 2)).await.unwrap();
    assert_eq!(relay.next().await["key"], "o2");
    relay.process.kill().await.unwrap();

    say(server, insert(name, 3)).await.unwrap();
    let mut relay = Relay::start(&database, &config);
    let mut keys = Vec::new();
    while keys.last().is_none_or(|key| key != "o3") {
        keys.push(relay.next().await["key"].as_str().unwrap().to_owned());
    }
    // The last batch may come again after a kill, and nothing is left out.
    assert!(keys == ["o3"] || keys == ["o2", "o3"], "{keys:?}");
}

#[test]
fn metrics_of_a_relay_alone_are_shown_to_this_machine_unless_they_are_public() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relay.toml");
    let config = "source = \"mysql://nobody@127.0.0.1:9/nothing\"\ngroup = \"g\"\ntables = [{ name = \"t\" }]\n\
                  sink = { kind = \"stdout\", file = \"c\" }\n[[routes]]\nformat = { kind = \"debezium\" }\n";
    std::fs::write(&file, config).unwrap();
    let relay = |listen: &str, is_public: &str| {
        let mut command = std::process::Command::new(crate::BINARY);
        command.arg("relay").arg("--config").arg(&file).args(["--listen", listen]).current_dir(folder.path());
        command.env("TIDINGS__HTTP__METRICS_PUBLIC", is_public);
        Process::start(command, "the binary should be there")
    };
    let mut open = relay("0.0.0.0:0", "false");
    assert_eq!(open.find_line("anything"), None);
    assert!(!open.wait().success());
    assert!(open.said().contains("TIDINGS__HTTP__METRICS_PUBLIC=true"), "{}", open.said());
    for (listen, is_public) in [("127.0.0.1:0", "false"), ("0.0.0.0:0", "true")] {
        let mut told = relay(listen, is_public);
        told.wait_until_said("the relay tells how it is");
        told.signal(Signal::TERM);
        assert!(told.wait().success(), "{}", told.said());
    }
}
