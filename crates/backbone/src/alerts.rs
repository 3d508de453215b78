//! Tells a webhook when a key dies: somebody must look at it, and nobody looks at a table all day.
//!
//! Each death is one POST, signed as Standard Webhooks says, with the same `webhook-id` however often it is
//! sent. It is noted in the key's row that it was told: so it is told at least once, whatever is killed in
//! between, and nearly always exactly once, also by several processes. The body is JSON:
//!
//! ```json
//! {"type": "key.died", "timestamp": "2026-11-29T15:26:17.123Z", "data": {
//!     "projector": "lamps", "topic": "house.switch", "partition": 3, "key": "17", "attempts": 3,
//!     "error": "..", "event_id": "019ac3f2-4c1e-7aa0-b2c3-0d1e2f3a4b5c", "event_type": "switch.turned",
//!     "waiting": 12, "parked_at": "..", "died_at": ".."}}
//! ```
//!
//! Any answer but a 2xx, or none in time, and the same death is told again later, with growing pauses; a
//! redirect is not followed.

use std::time::Duration;

use aws_lc_rs::digest;
use reqwest::{Client, Url, header::CONTENT_TYPE};
use serde_json::json;
use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Db, Error, Result,
    limits::{ALERT_BACKOFF_MAX, ALERT_BACKOFF_MIN, ALERT_LOOK_GAP, ALERT_ROUND_DEATHS_MAX},
    parking::{Death, note_told, take_untold},
    relay::sink::webhook::{Secret, checked},
    telemetry,
};

/// Where alerts go.
#[derive(Clone, Debug)]
pub struct Options {
    /// The receiver.
    pub url: String,
    /// The secret that is shared with it.
    pub secret: Secret,
    /// Time that it has to answer.
    pub timeout: Duration,
}

/// The part that tells.
#[derive(Debug)]
pub struct Alerts {
    db: Db,
    clock: Clock,
    url: Url,
    secret: Secret,
    timeout: Duration,
    client: Client,
    backoff: Duration,
}

impl Alerts {
    /// Alerts that are not told yet.
    ///
    /// # Errors
    /// When the URL is none that can be sent to.
    pub fn new(db: Db, clock: Clock, options: &Options) -> Result<Self> {
        let Options { url, secret, timeout } = options;
        let client = Client::builder()
            .timeout(*timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(Error::Webhook)?;
        let (url, secret) = (checked(url)?, secret.clone());
        Ok(Self { db, clock, url, secret, timeout: *timeout, client, backoff: ALERT_BACKOFF_MIN })
    }

    /// Runs until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        loop {
            // Cut short, a death is told again later.
            let round = tokio::select! {
                round = self.round() => round,
                () = shutdown.cancelled() => return,
            };
            let pause = match round {
                Ok(pause) => pause,
                Err(error) => self.step_back(&error, "deaths of keys cannot be looked for; trying again"),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Tells what there is, at most [`ALERT_ROUND_DEATHS_MAX`] deaths; answers how long to pause.
    ///
    /// # Errors
    /// When the database fails. A receiver that does is waited for.
    pub async fn round(&mut self) -> Result<Duration> {
        for _ in 0..ALERT_ROUND_DEATHS_MAX {
            let (until, horizon) = (self.later(2 * self.timeout), self.later(2 * (self.timeout + ALERT_BACKOFF_MAX)));
            let Some(death) = take_untold(&self.db, self.clock.now(), until, horizon).await? else {
                return Ok(ALERT_LOOK_GAP);
            };
            if let Err(error) = self.tell(&death).await {
                telemetry::alert_failed();
                let pause = self.step_back(&error, "the receiver of alerts does not take them; trying again");
                note_told(&self.db, &death, Some(self.later(pause))).await?;
                return Ok(pause);
            }
            note_told(&self.db, &death, None).await?;
            telemetry::alert_sent();
            if self.backoff > ALERT_BACKOFF_MIN {
                tracing::info!("the receiver of alerts is back");
                self.backoff = ALERT_BACKOFF_MIN;
            }
        }
        Ok(Duration::ZERO)
    }

    async fn tell(&self, death: &Death) -> Result<()> {
        let key = &death.key;
        let body = json!({
            "type": "key.died",
            "timestamp": death.died_at.to_string(),
            "data": {
                "projector": key.projector,
                "topic": &*key.part.topic,
                "partition": key.part.number,
                "key": key.key,
                "attempts": key.attempts,
                "error": key.error,
                "event_id": key.event_id,
                "event_type": key.event_type,
                "waiting": key.waiting,
                "parked_at": key.parked_at.to_string(),
                "died_at": death.died_at.to_string(),
            },
        })
        .to_string();
        let (id, seconds) = (id(death), self.clock.now().0.div_euclid(1_000));
        let request = self
            .client
            .request(reqwest::Method::POST, self.url.clone())
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(&id, seconds, body.as_bytes()))
            .header(CONTENT_TYPE, "application/json");
        // The URL may hold what is nobody's business.
        let answer = request.body(body).send().await.map_err(|error| Error::Webhook(error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(Error::WebhookAnswer { status: status.as_u16() }) }
    }

    /// Says what failed, once until all is well again; answers how long to pause.
    fn step_back(&mut self, error: &Error, what: &'static str) -> Duration {
        let pause = self.backoff;
        if pause == ALERT_BACKOFF_MIN {
            tracing::warn!(error = Error::chain(error), "{what}");
        }
        self.backoff = (pause * 2).min(ALERT_BACKOFF_MAX);
        pause
    }

    fn later(&self, by: Duration) -> Timestamp {
        Timestamp(self.clock.now().0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// The identity of a death, the same however often it is told.
fn id(death: &Death) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    let (part, died_at) = (death.key.part.to_string(), death.died_at.0.to_string());
    for text in [death.key.projector.as_str(), &part, &death.key.key, &died_at] {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
    context.finish().as_ref()[..16].iter().fold("death_".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}
