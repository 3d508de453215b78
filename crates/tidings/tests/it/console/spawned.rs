//! A child process whose output is read line by line, and that never outlives its test.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// How long a process may take to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Spawned {
    child: Child,
    lines: Receiver<String>,
}

impl Spawned {
    /// Starts it; `missing` says what to do when the program is not there.
    pub(crate) fn start(mut command: Command, missing: &str) -> Self {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{missing} ({error})"));
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // Reads to the end, whether or not anybody listens: a full pipe would stop the child.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        Self { child, lines }
    }

    /// The next line that contains `text`.
    pub(crate) fn line_containing(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no line with “{text}” was printed: {error}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Kills it and waits until it is gone. Twice is once.
    pub(crate) fn end(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.end();
    }
}
