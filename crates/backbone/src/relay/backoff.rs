//! Pauses between tries that grow, and that differ between relays.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;

use crate::limits::{RELAY_BACKOFF_MAX, RELAY_BACKOFF_MIN};

/// The pause before the next try.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    random: StdRng,
}

impl Backoff {
    pub(super) fn new() -> Self {
        let mut seed: StdRng = rand::make_rng();
        Self { next: RELAY_BACKOFF_MIN, random: StdRng::from_rng(&mut seed) }
    }

    /// A try has succeeded.
    pub(super) fn reset(&mut self) {
        self.next = RELAY_BACKOFF_MIN;
    }

    /// Whether a try has failed since.
    pub(super) fn has_stepped(&self) -> bool {
        self.next > RELAY_BACKOFF_MIN
    }

    /// The pause before the next try: between a half and the whole of what doubles each time.
    pub(super) fn step(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + self.random.random::<f64>() / 2.0);
        self.next = (self.next * 2).min(RELAY_BACKOFF_MAX);
        pause
    }

    /// Waits, unless the relay is being stopped.
    pub(super) async fn wait(pause: Duration, shutdown: &CancellationToken) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
