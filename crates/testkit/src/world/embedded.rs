//! The embedded world: one process and a data folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::Mutex,
};

use super::Options;
use crate::process::{Process, Signal};

const READY_LINE: &str = "Tidings is at ";

#[derive(Debug)]
pub(super) struct Embedded {
    options: Options,
    folder: tempfile::TempDir,
    server: Mutex<Server>,
}

#[derive(Debug, Default)]
struct Server {
    process: Option<Process>,
    url: String,
}

impl Embedded {
    pub(super) fn new(options: Options) -> Self {
        Self { options, folder: tempfile::tempdir().unwrap(), server: Mutex::default() }
    }

    pub(super) fn url(&self) -> String {
        self.server.lock().unwrap().url.clone()
    }

    pub(super) fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(super) fn scratch_folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.options.binary);
        command.args(arguments).arg("--data").arg(self.data_folder());
        for (key, value) in &self.options.settings {
            command.env(format!("TIDINGS__{}", key.to_uppercase().replace('.', "__")), value);
        }
        command
    }

    /// Starts the server on a port of the system's choice: one that was in use before may belong
    /// to somebody else by now.
    pub(super) async fn start(&self, variables: &[(&str, &str)]) -> bool {
        assert!(self.server.lock().unwrap().process.is_none(), "the server runs already");
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied());
        let started = tokio::task::spawn_blocking(move || {
            let process = Process::start(command, "the binary should be there");
            let line = process.find_line(READY_LINE);
            (process, line)
        });
        let (process, line) = started.await.unwrap();
        let Some(line) = line else { return false };
        let (_, url) = line.split_once(READY_LINE).unwrap();
        let url = url.split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
        *self.server.lock().unwrap() = Server { process: Some(process), url };
        true
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.server.lock().unwrap().process {
            process.signal(signal);
        }
    }

    pub(super) async fn end_by(&self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.ended().await
    }

    /// Waits beside the test's own tasks: a server that ends in order may wait for their requests.
    pub(super) async fn ended(&self) -> ExitStatus {
        let process = self.server.lock().unwrap().process.take();
        let mut process = process.expect("the server should run");
        tokio::task::spawn_blocking(move || process.wait()).await.unwrap()
    }
}
