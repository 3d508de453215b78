//! The parts of a world: started, stopped, killed and paused, all of them or each by itself.

use std::{process::ExitStatus, time::Duration};

use super::World;
use crate::process::Signal;

/// Pause between two questions whether a part is ready.
const READY_GAP: Duration = Duration::from_millis(5);

/// A part of a world that runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// One process that does everything.
    Server,
    /// A process that serves the API.
    Api(u8),
    /// A relay; of several, one works.
    Relay(u8),
    /// A process that maintains projections.
    Project(u8),
}

impl Part {
    pub(super) const TOGETHER: &'static [Self] = &[Self::Server];
    pub(super) const APART: &'static [Self] = &[
        Self::Api(1),
        Self::Api(2),
        Self::Relay(1),
        Self::Relay(2),
        Self::Project(1),
        Self::Project(2),
        Self::Project(3),
    ];

    /// Whether it serves the API.
    pub fn has_api(self) -> bool {
        matches!(self, Self::Server | Self::Api(_))
    }

    /// Its command, and what the line begins with in which it says where it is.
    pub(super) fn command(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("serve", "Tidings is at "),
            Self::Api(_) => ("api", "Tidings is at "),
            Self::Relay(_) => ("relay", "Tidings relay is at "),
            Self::Project(_) => ("project", "Tidings project is at "),
        }
    }
}

impl World {
    /// What a part last logged; nothing where it does not run.
    pub fn said(&self, part: Part) -> String {
        self.processes.said(part)
    }

    /// Starts every part that does not run, and waits until each is ready.
    pub async fn start(&self) {
        self.start_on_conditions(&[]).await;
    }

    /// Starts every part with these variables in its environment, and waits until each is ready.
    pub async fn start_on_conditions(&self, variables: &[(&str, &str)]) {
        for part in self.capabilities().parts {
            if !self.processes.is_running(*part) {
                self.start_part(*part, variables).await;
            }
        }
    }

    /// Starts a part and waits until it is ready.
    pub async fn start_part(&self, part: Part, variables: &[(&str, &str)]) {
        assert!(self.processes.start(part, variables).await, "{part:?} ended instead of serving");
        let urls = self.processes.urls();
        let (_, url) = urls.iter().find(|(other, _)| *other == part).expect("it was started");
        loop {
            let ready = self.client.get(format!("{url}/health/ready")).send().await;
            if ready.expect("a process that printed its address answers").status().is_success() {
                break;
            }
            tokio::time::sleep(READY_GAP).await;
        }
        self.note_up();
    }

    /// Starts a part that need not become ready; answers where it tells how it is.
    pub async fn start_part_unready(&self, part: Part) -> String {
        assert!(self.processes.start(part, &[]).await, "{part:?} ended instead of waiting");
        self.processes.urls().into_iter().find(|(other, _)| *other == part).expect("it was started").1
    }

    /// Starts the server of a world whose work is together; false when it ended before it said where it is.
    pub async fn try_start(&self, variables: &[(&str, &str)]) -> bool {
        self.processes.start(Part::Server, variables).await
    }

    /// Asks every part to end (SIGTERM), those with the API first, and waits until each has; the first
    /// status that is none of success, if any.
    pub async fn stop(&self) -> ExitStatus {
        self.end_all(Signal::TERM).await
    }

    /// Kills every part (SIGKILL) and waits until it is gone.
    pub async fn kill(&self) -> ExitStatus {
        self.end_all(Signal::KILL).await
    }

    async fn end_all(&self, signal: Signal) -> ExitStatus {
        self.up.send_replace(false);
        let mut statuses = Vec::new();
        for part in self.capabilities().parts.iter().filter(|part| self.processes.is_running(**part)) {
            statuses.push(self.processes.end_by(*part, signal).await);
        }
        let failed = statuses.iter().find(|status| !status.success());
        *failed.or(statuses.first()).expect("some part should run")
    }

    /// Asks a part to end (SIGTERM) and waits until it has.
    pub async fn stop_part(&self, part: Part) -> ExitStatus {
        self.end_part(part, Signal::TERM).await
    }

    /// Kills a part (SIGKILL) and waits until it is gone.
    pub async fn kill_part(&self, part: Part) -> ExitStatus {
        self.end_part(part, Signal::KILL).await
    }

    async fn end_part(&self, part: Part, signal: Signal) -> ExitStatus {
        let status = self.processes.end_by(part, signal).await;
        self.note_up();
        status
    }

    fn note_up(&self) {
        self.up.send_replace(self.processes.has_api());
    }

    /// Waits until the server of a world whose work is together ends by itself.
    pub async fn ended(&self) -> ExitStatus {
        self.up.send_replace(false);
        self.processes.ended(Part::Server).await
    }

    /// Waits while there is no server, as a client does who tries again.
    pub async fn is_up(&self) {
        let up = self.up.subscribe().wait_for(|up| *up).await.map(|up| *up);
        assert!(up.unwrap(), "the world outlives its borrow");
    }

    /// Freezes every part (SIGSTOP).
    pub fn pause(&self) {
        self.capabilities().parts.iter().for_each(|part| self.pause_part(*part));
    }

    /// Lets frozen parts go on (SIGCONT).
    pub fn resume(&self) {
        self.capabilities().parts.iter().for_each(|part| self.resume_part(*part));
    }

    /// Freezes a part (SIGSTOP).
    pub fn pause_part(&self, part: Part) {
        self.processes.signal(part, Signal::STOP);
    }

    /// Lets a frozen part go on (SIGCONT).
    pub fn resume_part(&self, part: Part) {
        self.processes.signal(part, Signal::CONT);
    }

    /// Stops every part in order and starts it again.
    pub async fn restart(&self) {
        let status = self.stop().await;
        assert!(status.success(), "an orderly end: {status}");
        self.start().await;
    }

    /// Stops a part in order and starts it again.
    pub async fn restart_part(&self, part: Part) {
        let status = self.stop_part(part).await;
        assert!(status.success(), "an orderly end of {part:?}: {status}");
        self.start_part(part, &[]).await;
    }
}
