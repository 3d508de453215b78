//! Prints events, until nobody reads them any more.

use std::{io, ops::ControlFlow};

use tidings_backbone::log::Recorded;
use tidings_event::cloudevents;

use crate::{
    Result,
    cli::{operator::harmless, put},
};

/// How events are printed to standard output.
pub(super) struct Output {
    /// As CloudEvents JSON instead of columns.
    pub(super) json: bool,
}

impl Output {
    /// Prints events, one a line. `Break` when the reader has gone away.
    pub(super) fn print(&self, events: &[Recorded]) -> Result<ControlFlow<()>> {
        if events.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut text = String::new();
        for event in events {
            text.push_str(&self.line(event)?);
            text.push('\n');
        }
        put(&text)
    }

    fn line(&self, recorded: &Recorded) -> Result<String> {
        let event = &recorded.event;
        if self.json {
            let encoded = cloudevents::json::encode(event, cloudevents::SOURCE);
            return encoded.map_err(|source| tidings_backbone::Error::Event(source).into());
        }
        let (offset, time, version) = (recorded.offset.0, event.occurred_at, event.version);
        let (event_type, key) = (harmless(&event.event_type), harmless(&event.key));
        Ok(format!("{offset:>8}  {time}  {event_type:<20}  {key:<8}  v{version:<4} {}", harmless(event.payload.get())))
    }
}

/// Returns when the reader of standard output has gone away, though nothing is printed meanwhile:
/// `tidings events tail --follow | head -n 1` ends with its `head`.
#[cfg(unix)]
pub(super) async fn closed() {
    use std::os::fd::AsFd as _;

    use tokio::{io::Interest, net::unix::pipe::Sender};
    // Only watched, never written to; so it may stay in the mode in which it was handed to us. A file
    // cannot be watched and has no reader to lose.
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd_unchecked);
    if let Ok(stdout) = stdout
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(not(unix))]
pub(super) async fn closed() {
    std::future::pending().await
}
