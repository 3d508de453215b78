//! A child process whose output is read line by line, and that never outlives its test.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// How long a process may take to say that it is ready, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at what it has written to standard error.
const LOOK_GAP: Duration = Duration::from_millis(10);
/// Lines of standard error that are kept, to be shown when a test fails.
const ERROR_LINES_MAX: usize = 200;

/// A running child. Dropping it kills it; where a test is failing it tells what the child last said.
#[derive(Debug)]
pub struct Process {
    child: Child,
    program: String,
    lines: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
    error_reader: Option<JoinHandle<()>>,
    /// Disconnected once standard error was read to its end.
    errors_end: Receiver<()>,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts it; `missing` says what to do when the program is not there.
    pub fn start(mut command: Command, missing: &str) -> Self {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{missing} ({error})"));
        let (sender, lines) = channel();
        // Reads to the end, whether or not anybody listens: a full pipe would stop the child.
        read_lines(child.stdout.take().unwrap(), move |line| drop(sender.send(line)));
        let errors = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = Arc::clone(&errors);
        let (until_the_end, errors_end) = channel::<()>();
        let error_reader = Some(read_lines(child.stderr.take().unwrap(), move |line| {
            let _ = &until_the_end;
            let mut kept = kept.lock().unwrap();
            if kept.len() == ERROR_LINES_MAX {
                kept.pop_front();
            }
            kept.push_back(line);
        }));
        let program = command.get_program().to_string_lossy().into_owned();
        Self { child, program, lines, errors, error_reader, errors_end, ended: None }
    }

    /// The next line of its output that contains `text`.
    pub fn line_containing(&self, text: &str) -> String {
        let found = self.find_line(text);
        found.unwrap_or_else(|| panic!("{} ended without a line with “{text}”: {}", self.program, self.said()))
    }

    /// The next line of its output that contains `text`; `None` when it ended without one.
    pub fn find_line(&self, text: &str) -> Option<String> {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no line with “{text}” was printed: {}", self.said()),
            }
        }
    }

    /// Sends a signal. One that comes too late has no effect: until it was waited for, the child
    /// keeps its number.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }
    }

    /// Waits until it has ended and all that it said was read.
    pub fn wait(&mut self) -> ExitStatus {
        if let Some(status) = self.ended {
            return status;
        }
        // Its end closes its output, which is a wait with a limit that needs no polling.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("{} does not end: {}", self.program, self.said()),
            }
        }
        let status = self.child.wait().unwrap();
        let end = self.errors_end.recv_timeout(PATIENCE);
        assert_eq!(end, Err(RecvTimeoutError::Disconnected), "{} left its standard error open", self.program);
        self.ended = Some(status);
        status
    }

    /// What it last wrote to standard error.
    pub fn said(&self) -> String {
        let kept = self.errors.lock().unwrap();
        kept.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Waits until it has written `text` to standard error. What it prints meanwhile is passed over.
    pub fn wait_until_said(&self, text: &str) {
        for _ in 0..PATIENCE.as_millis() / LOOK_GAP.as_millis() {
            let has_ended = self.lines.recv_timeout(LOOK_GAP) == Err(RecvTimeoutError::Disconnected);
            if self.said().contains(text) {
                return;
            }
            assert!(!has_ended, "{} ended without “{text}”: {}", self.program, self.said());
        }
        panic!("“{text}” was not said: {}", self.said());
    }

    /// Kills it and waits until it is gone. Twice is once.
    pub fn end(&mut self) {
        if self.ended.is_none() {
            drop(self.child.kill());
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        if thread::panicking() {
            if let Some(reader) = self.error_reader.take() {
                drop(reader.join());
            }
            eprintln!("---- {} said last:\n{}", self.program, self.said());
        }
    }
}

fn read_lines(from: impl Read + Send + 'static, mut take: impl FnMut(String) + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            take(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    })
}
