//! Spans to a collector, by OTLP over HTTP.
//!
//! Whoever makes a span never waits for this: the queue between is bounded, and what does not fit, or is not taken
//! by the collector after some tries, is counted and lost. Its trouble is said once.

use std::time::Duration;

use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use tidings_backbone::{
    Error as BackboneError, telemetry,
    trace::{self, Span},
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::otlp;
use crate::{
    Error, Result,
    config::{Config, Telemetry},
    serve::Role,
};

/// Spans of one request to the collector.
const BATCH_SPANS_MAX: usize = 512;
/// Time in which they gather.
const GATHER_TIME: Duration = Duration::from_millis(500);
/// Time that one request may take.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);
/// Tries of one batch, and the pause before the second; it doubles with each.
const TRIES_MAX: u32 = 3;
const RETRY_GAP_MIN: Duration = Duration::from_secs(1);
/// Time that the end of the process waits for what is still to be sent.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(3);

/// The tracing of a process.
#[derive(Debug)]
pub struct Tracing {
    sending: Option<(JoinHandle<()>, CancellationToken)>,
}

impl Tracing {
    /// Turns traces on, if a collector is named.
    ///
    /// # Errors
    /// When the client of the collector cannot be made.
    pub fn start(config: &Config, role: Role) -> Result<Self> {
        let Some(url) = config.telemetry.traces_url() else { return Ok(Self { sending: None }) };
        let exporter = exporter(&config.telemetry, &url, role)?;
        // A second server in one process, as tests start them, is traced by the first one's.
        let Some(spans) = trace::collect(config.telemetry.queue_spans_max) else { return Ok(Self { sending: None }) };
        let ending = CancellationToken::new();
        let sender = Sender { exporter, ending: ending.clone(), is_in_trouble: false };
        let (ratio, endpoint) = (config.telemetry.sample_ratio, config.telemetry.otlp_endpoint.to_string());
        tracing::info!(endpoint, ratio, "requests are traced");
        Ok(Self { sending: Some((tokio::spawn(sender.run(spans)), ending)) })
    }

    /// Sends what waits, for a limited time.
    pub async fn end(self) {
        let Some((sending, ending)) = self.sending else { return };
        ending.cancel();
        let is_sent = timeout(FLUSH_TIME_MAX, sending).await.is_ok();
        let left = trace::waiting().map_or(0, |(spans, _)| spans);
        if !is_sent {
            telemetry::spans_dropped("not_sent", left);
            tracing::warn!(left, "the collector of traces did not take the last spans in time");
        }
    }
}

/// The client of the collector. Nothing is connected yet.
fn exporter(config: &Telemetry, url: &reqwest::Url, role: Role) -> Result<SpanExporter> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Tracing { source };
    let client = reqwest::Client::builder()
        .timeout(SEND_TIME_MAX)
        // What is sent goes where the operator said, and its headers with it.
        .redirect(reqwest::redirect::Policy::none())
        .default_headers(config.header_map()?)
        .build()
        .map_err(|error| failed(error.into()))?;
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url.as_str())
        .with_timeout(SEND_TIME_MAX)
        .build()
        .map_err(|error| failed(error.into()))?;
    exporter.set_resource(&resource(config, role));
    Ok(exporter)
}

/// What this process is; the standard variable OTEL_RESOURCE_ATTRIBUTES adds to it.
fn resource(config: &Telemetry, role: Role) -> Resource {
    let instance = trace::TraceId::random().to_string();
    let own = [
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance),
        ("tidings.role", role.name().to_owned()),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let given = config.resource.reveal().iter().map(|(name, value)| (name.clone(), value.clone()));
    Resource::builder()
        .with_attributes(own.chain(given).map(|(name, value)| opentelemetry::KeyValue::new(name, value)))
        .with_service_name(config.service_name.clone())
        .build()
}

struct Sender {
    exporter: SpanExporter,
    ending: CancellationToken,
    /// Whether its trouble was said, and has not ended.
    is_in_trouble: bool,
}

impl Sender {
    /// Sends until the end is asked for, and then what is left.
    async fn run(mut self, mut spans: mpsc::Receiver<Span>) {
        let mut batch = Vec::with_capacity(BATCH_SPANS_MAX);
        loop {
            tokio::select! {
                biased;
                taken = spans.recv_many(&mut batch, BATCH_SPANS_MAX) => if taken == 0 { return },
                () = self.ending.cancelled(), if !spans.is_closed() => {
                    spans.close();
                    continue;
                }
            }
            self.gather(&mut spans, &mut batch).await;
            self.send(batch.drain(..).map(otlp::span).collect()).await;
        }
    }

    async fn gather(&self, spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
        let gathering = async {
            while batch.len() < BATCH_SPANS_MAX && spans.recv_many(batch, BATCH_SPANS_MAX - batch.len()).await > 0 {}
        };
        tokio::select! {
            biased;
            _ended = timeout(GATHER_TIME, gathering) => {}
            () = self.ending.cancelled() => {}
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let (count, mut pause) = (batch.len(), RETRY_GAP_MIN);
        for is_last in (1..=TRIES_MAX).map(|number| number == TRIES_MAX) {
            let sent = match timeout(SEND_TIME_MAX, self.exporter.export(batch.clone())).await {
                Ok(sent) => sent.map_err(|error| BackboneError::chain(&error)),
                Err(_elapsed) => Err(format!("no answer within {} s", SEND_TIME_MAX.as_secs())),
            };
            let error = match sent {
                Ok(()) => {
                    telemetry::spans_sent(count);
                    if std::mem::take(&mut self.is_in_trouble) {
                        tracing::info!("the collector takes traces again");
                    }
                    return;
                }
                Err(error) => error,
            };
            if !std::mem::replace(&mut self.is_in_trouble, true) {
                tracing::warn!(error, "the collector of traces takes nothing; spans are dropped and counted");
            }
            if is_last || self.ending.is_cancelled() {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.ending.cancelled() => {}
            }
            pause *= 2;
        }
        telemetry::spans_dropped("not_sent", count);
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("is_in_trouble", &self.is_in_trouble).finish_non_exhaustive()
    }
}
