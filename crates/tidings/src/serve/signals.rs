//! SIGTERM and SIGINT.

use tokio_util::sync::CancellationToken;

/// From now on the first signal asks for an orderly end, and the second does not wait for it.
///
/// The signals are taken before this returns. So a server that calls it before it prints its
/// address can be ended in order by whoever has read that.
pub fn cancel_on_signal(shutdown: CancellationToken) {
    let mut signals = Signals::take();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("shutting down; a second signal ends at once");
        shutdown.cancel();
        signals.next().await;
        tracing::warn!("ended by a second signal");
        std::process::exit(130);
    });
}

#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn take() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [("SIGTERM", SignalKind::terminate()), ("SIGINT", SignalKind::interrupt())];
        let taken = kinds.into_iter().filter_map(|(name, kind)| {
            let noticed = signal(kind);
            noticed.inspect_err(|error| tracing::error!(%error, "{name} cannot be noticed")).ok()
        });
        Self(taken.collect())
    }

    async fn next(&mut self) {
        if self.0.is_empty() {
            std::future::pending::<()>().await;
        }
        futures::future::select_all(self.0.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn take() -> Self {
        Self
    }

    async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "an interrupt cannot be noticed");
            std::future::pending::<()>().await;
        }
    }
}
