//! Debezium's embedded engine on the same part of the binlog: see `benches/debezium`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mysql_async::Opts;

use crate::outbox::{Outbox, TABLE};

/// The most memory its heap may take. The engine's own default is a quarter of the machine's.
pub(crate) const HEAP: &str = "-Xmx512m";

/// The harness, compiled.
pub(crate) struct Harness {
    class_path: String,
}

/// What one run found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// From its first record to its last one: neither the start of Java nor that of the connector.
    pub(crate) seconds: f64,
    pub(crate) peak_kib: f64,
}

impl Harness {
    /// Fetches the engine's jars, as `pom.xml` names them, and compiles the harness.
    pub(crate) fn prepare() -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/debezium");
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("debezium");
        std::fs::create_dir_all(&target).unwrap();
        let list = target.join("class-path");
        let goal = ["-q", "-B", "dependency:build-classpath"];
        run(Command::new("mvn")
            .args(goal)
            .arg(format!("-Dmdep.outputFile={}", list.display()))
            .arg("-f")
            .arg(sources.join("pom.xml")));
        let jars = std::fs::read_to_string(&list).unwrap();
        let jars = jars.trim();
        run(Command::new("javac").arg("-cp").arg(jars).arg("-d").arg(&target).arg(sources.join("Peer.java")));
        Self { class_path: format!("{}:{jars}", target.display()) }
    }

    pub(crate) fn run(&self, outbox: &Outbox, rows: usize) -> Outcome {
        let server = Opts::from_url(&outbox.server).unwrap();
        let kind = if outbox.is_mariadb { "mariadb" } else { "mysql" };
        let output = Command::new("java")
            .args([HEAP, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", &self.class_path, "Peer", kind])
            .args([server.ip_or_hostname(), &server.tcp_port().to_string()])
            .args([server.user().unwrap_or_default(), server.pass().unwrap_or_default()])
            .args([&outbox.database, TABLE, &outbox.from.file, &outbox.from.offset.to_string()])
            .args([&outbox.from.gtid, &rows.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "Debezium's engine has failed");
        let text = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
        assert_eq!(figures[0], rows as f64, "Debezium's engine made another number of records");
        Outcome { seconds: figures[1], peak_kib: figures[2] }
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{}: {status}", command.get_program().display());
}
