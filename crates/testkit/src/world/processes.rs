//! The processes of a world, each a part of it, and the folder they share.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{Options, Part};
use crate::process::{Process, Signal};

#[derive(Debug)]
pub(super) struct Processes {
    options: Options,
    /// Where the services are that this world stands on.
    variables: Vec<(String, String)>,
    folder: tempfile::TempDir,
    running: Mutex<BTreeMap<Part, Running>>,
    /// Turns of the processes that serve the API.
    turns: AtomicUsize,
    /// Where the API was when it was last served.
    last_url: Mutex<String>,
}

#[derive(Debug)]
struct Running {
    process: Process,
    url: String,
}

impl Processes {
    pub(super) fn new(options: Options, variables: Vec<(String, String)>) -> Self {
        Self {
            options,
            variables,
            folder: tempfile::tempdir().unwrap(),
            running: Mutex::default(),
            turns: AtomicUsize::new(0),
            last_url: Mutex::default(),
        }
    }

    pub(super) fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(super) fn scratch_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the API is: of several processes each in turn. Where it was, while none runs.
    pub(super) fn url(&self) -> String {
        let running = self.running.lock().unwrap();
        let served: Vec<&str> = running.iter().filter(|(part, _)| part.has_api()).map(|(_, at)| &*at.url).collect();
        if served.is_empty() {
            return self.last_url.lock().unwrap().clone();
        }
        served[self.turns.fetch_add(1, Ordering::Relaxed) % served.len()].to_owned()
    }

    /// Where every part tells how it is.
    pub(super) fn urls(&self) -> Vec<(Part, String)> {
        self.running.lock().unwrap().iter().map(|(part, at)| (*part, at.url.clone())).collect()
    }

    pub(super) fn is_running(&self, part: Part) -> bool {
        self.running.lock().unwrap().contains_key(&part)
    }

    pub(super) fn has_api(&self) -> bool {
        self.running.lock().unwrap().keys().any(|part| part.has_api())
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.options.binary);
        command.args(arguments).arg("--data").arg(self.data_folder());
        let settings = self.options.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        for (key, value) in self.variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).chain(settings) {
            command.env(format!("TIDINGS__{}", key.to_uppercase().replace('.', "__")), value);
        }
        command
    }

    /// Starts a part on a port of the system's choice: one that was in use before may belong to
    /// somebody else by now. False when it ended before it said where it is.
    pub(super) async fn start(&self, part: Part, variables: &[(&str, &str)]) -> bool {
        assert!(!self.is_running(part), "{part:?} runs already");
        let (role, ready) = part.command();
        let mut command = self.command(&[role, "--listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied());
        let started = tokio::task::spawn_blocking(move || {
            let process = Process::start(command, "the binary should be there");
            let line = process.find_line(ready);
            (process, line)
        });
        let (process, line) = started.await.unwrap();
        let Some(line) = line else { return false };
        let (_, url) = line.split_once(ready).unwrap();
        let url = url.split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
        if part.has_api() {
            *self.last_url.lock().unwrap() = url.clone();
        }
        self.running.lock().unwrap().insert(part, Running { process, url });
        true
    }

    /// What a part last wrote to standard error; nothing where it does not run.
    pub(super) fn said(&self, part: Part) -> String {
        self.running.lock().unwrap().get(&part).map(|running| running.process.said()).unwrap_or_default()
    }

    pub(super) fn signal(&self, part: Part, signal: Signal) {
        if let Some(running) = self.running.lock().unwrap().get(&part) {
            running.process.signal(signal);
        }
    }

    pub(super) async fn end_by(&self, part: Part, signal: Signal) -> ExitStatus {
        self.signal(part, signal);
        self.ended(part).await
    }

    /// Waits beside the test's own tasks: a server that ends in order may wait for their requests. No
    /// request is sent to it from now on.
    pub(super) async fn ended(&self, part: Part) -> ExitStatus {
        let running = self.running.lock().unwrap().remove(&part);
        let mut process = running.unwrap_or_else(|| panic!("{part:?} should run")).process;
        tokio::task::spawn_blocking(move || process.wait()).await.unwrap()
    }
}
