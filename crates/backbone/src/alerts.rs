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
//! Where more than [`ALERT_DEATHS_SINGLY_MAX`] keys die in a minute, the rest are told together, so that a bad deploy
//! does not page a hundred thousand times: how many keys of which projectors, and the first of them. Such a POST has
//! the same promise, and another id where it is made up anew:
//!
//! ```json
//! {"type": "keys.died", "timestamp": "2026-11-29T15:26:17.123Z", "data": {
//!     "keys": 1234, "by_projector": {"lamps": 1234}, "died_from": "..", "died_until": "..",
//!     "first": [{"projector": "lamps", "topic": "house.switch", "partition": 3, "key": "17", "died_at": ".."}]}}
//! ```
//!
//! Any answer but a 2xx, or none in time, and the same death is told again later, with growing pauses; a
//! redirect is not followed.

use std::{collections::BTreeMap, time::Duration};

use aws_lc_rs::digest;
use reqwest::{Client, Url, header::CONTENT_TYPE};
use serde_json::json;
use tidings_event::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Db, Error, Result,
    limits::{
        ALERT_BACKOFF_MAX, ALERT_BACKOFF_MIN, ALERT_CROWD_MAX, ALERT_CROWD_NAMED, ALERT_DEATHS_SINGLY_MAX,
        ALERT_LOOK_GAP, ALERT_MINUTE,
    },
    log::Part,
    parking::{Dead, Death, note_crowd_told, note_told, take_crowd, take_untold},
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
    minute: Minute,
}

/// What was told of late.
#[derive(Debug, Default)]
struct Minute {
    began: Timestamp,
    singly: usize,
    /// Whether all were told together that there were.
    is_crowd_told: bool,
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
        Ok(Self {
            db,
            clock,
            url,
            secret,
            timeout: *timeout,
            client,
            backoff: ALERT_BACKOFF_MIN,
            minute: Minute::default(),
        })
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

    /// Tells what there is: at most [`ALERT_DEATHS_SINGLY_MAX`] deaths of a minute one by one, the others together.
    /// Answers how long to pause.
    ///
    /// # Errors
    /// When the database fails. A receiver that does is waited for.
    pub async fn round(&mut self) -> Result<Duration> {
        let now = self.clock.now();
        let minute = i64::try_from(ALERT_MINUTE.as_millis()).unwrap_or(i64::MAX);
        // A clock that was set back begins one too.
        if !(0..minute).contains(&(now.0 - self.minute.began.0)) {
            self.minute = Minute { began: now, ..Minute::default() };
        }
        while self.minute.singly < ALERT_DEATHS_SINGLY_MAX {
            let until = self.later(2 * self.timeout);
            let Some(death) = take_untold(&self.db, self.clock.now(), until, self.horizon()).await? else {
                return Ok(ALERT_LOOK_GAP);
            };
            let told = self.tell(&death).await;
            if let Some((pause, again_at)) = self.heard(told) {
                note_told(&self.db, &death, Some(again_at)).await?;
                return Ok(pause);
            }
            note_told(&self.db, &death, None).await?;
            telemetry::alerts_sent(1);
            self.minute.singly += 1;
        }
        if self.minute.is_crowd_told { Ok(ALERT_LOOK_GAP) } else { self.tell_crowd().await }
    }

    /// Tells all that are left at once.
    async fn tell_crowd(&mut self) -> Result<Duration> {
        // Taking them and noting them takes a while too.
        let (until, horizon) = (self.later(2 * self.timeout + ALERT_MINUTE), self.horizon());
        let crowd = take_crowd(&self.db, self.clock.now(), until, horizon).await?;
        if crowd.is_empty() {
            return Ok(ALERT_LOOK_GAP);
        }
        let told = self.send(&crowd_id(&crowd), crowd_body(&crowd, self.clock.now())).await;
        if let Some((pause, again_at)) = self.heard(told) {
            note_crowd_told(&self.db, &crowd, Some(again_at)).await?;
            return Ok(pause);
        }
        note_crowd_told(&self.db, &crowd, None).await?;
        telemetry::alerts_sent(crowd.len());
        self.minute.is_crowd_told = crowd.len() < ALERT_CROWD_MAX;
        Ok(Duration::ZERO)
    }

    /// Of what was not taken: how long to pause, and when it is told again.
    fn heard(&mut self, told: Result<()>) -> Option<(Duration, Timestamp)> {
        if let Err(error) = told {
            telemetry::alert_failed();
            let pause = self.step_back(&error, "the receiver of alerts does not take them; trying again");
            return Some((pause, self.later(pause)));
        }
        if self.backoff > ALERT_BACKOFF_MIN {
            tracing::info!("the receiver of alerts is back");
            self.backoff = ALERT_BACKOFF_MIN;
        }
        None
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
        self.send(&id(death), body).await
    }

    async fn send(&self, id: &str, body: String) -> Result<()> {
        let seconds = self.clock.now().0.div_euclid(1_000);
        let request = self
            .client
            .request(reqwest::Method::POST, self.url.clone())
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(id, seconds, body.as_bytes()))
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

    /// What is to be told later than this was noted by a clock that was set back since.
    fn horizon(&self) -> Timestamp {
        self.later(2 * (self.timeout + ALERT_BACKOFF_MAX))
    }

    fn later(&self, by: Duration) -> Timestamp {
        Timestamp(self.clock.now().0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// What is told of many deaths.
fn crowd_body(crowd: &[Dead], now: Timestamp) -> String {
    let mut by_projector: BTreeMap<&str, usize> = BTreeMap::new();
    crowd.iter().for_each(|dead| *by_projector.entry(&dead.projector).or_default() += 1);
    let named = crowd.iter().take(ALERT_CROWD_NAMED).map(|Dead { projector, part, key, died_at }| {
        json!({
            "projector": projector,
            "topic": &*part.topic,
            "partition": part.number,
            "key": key,
            "died_at": died_at.to_string(),
        })
    });
    let moments = || crowd.iter().map(|dead| dead.died_at);
    let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
    json!({
        "type": "keys.died",
        "timestamp": now.to_string(),
        "data": {
            "keys": crowd.len(),
            "by_projector": by_projector,
            "died_from": text(moments().min()),
            "died_until": text(moments().max()),
            "first": named.collect::<Vec<_>>(),
        },
    })
    .to_string()
}

/// The identity of a death, the same however often it is told.
fn id(death: &Death) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    add(&mut context, &death.key.projector, &death.key.part, &death.key.key, death.died_at);
    text("death", context)
}

/// The identity of these deaths together.
fn crowd_id(crowd: &[Dead]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    crowd.iter().for_each(|dead| add(&mut context, &dead.projector, &dead.part, &dead.key, dead.died_at));
    text("deaths", context)
}

fn add(context: &mut digest::Context, projector: &str, part: &Part, key: &str, died_at: Timestamp) {
    let (part, died_at) = (part.to_string(), died_at.0.to_string());
    for text in [projector, &part, key, &died_at] {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
}

fn text(kind: &str, context: digest::Context) -> String {
    context.finish().as_ref()[..16].iter().fold(format!("{kind}_"), |id, byte| format!("{id}{byte:02x}"))
}
