//! A relay alone: any outbox, any sink, and nothing else of Tidings.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{Clock, EventIds, relay};
use tokio_util::sync::CancellationToken;

use super::{Role, base, cancel_on_signal, listening::Listening, run_until, running::Parts};
use crate::{
    Error, Result,
    config::{Config, Http},
    http::{self, Health, Ops, Readiness, Scrape, Sources, telemetry},
    telemetry::{Tracing, install_metrics},
};

/// Relays as a file of its own describes it, until SIGTERM or SIGINT; `other` tells what it does not: where it
/// listens, and where traces go. The standard output belongs to the sink.
///
/// # Errors
/// When the configuration has what cannot be, or the relay needs somebody's decision.
pub async fn relay_alone(config: &relay::Config, other: &Config) -> Result<()> {
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone());
    let (readiness, metrics) = (Readiness::default(), install_metrics());
    let relay = config.relay(Clock::system())?;
    let tracing = Tracing::start(other, Role::Relay)?;
    let listening = listening(&other.http, &readiness, &relay, metrics.clone()).await?;
    let mut parts = Parts::new(None, metrics);
    let ending = parts.shutdown.clone();
    parts.watched.push(("the relay", tokio::spawn(async move { Ok(relay.run(ending).await?) })));
    let relayed = run_until(&shutdown, &readiness, parts, listening, &CancellationToken::new(), Duration::ZERO).await;
    tracing.end().await;
    relayed
}

/// Where the relay tells how it is. There is no key here that tokens could be signed with, so that only the
/// address says who may see the metrics: this machine, unless they are public.
///
/// # Errors
/// When others could reach the address and the metrics are not public, or it cannot be listened on.
async fn listening(
    http: &Http,
    readiness: &Readiness,
    relay: &relay::Relay,
    metrics: PrometheusHandle,
) -> Result<Option<Listening>> {
    let Some(listen) = http.ops_listen else { return Ok(None) };
    if !listen.ip().is_loopback() && !http.metrics_public {
        return Err(Error::Usage(format!(
            "at {listen} everybody who reaches it would see the metrics of a relay alone, which has no tokens: \
             listen on 127.0.0.1, or set `TIDINGS__HTTP__METRICS_PUBLIC=true`"
        )));
    }
    let mut http = http.clone();
    http.listen = listen;
    let listening = Listening::begin(&mut http, readiness).await?;
    let health = Health::of_relay(readiness.clone(), relay.handle());
    let sources = Sources {
        reconciliations: None,
        health: health.clone(),
        db: None,
        ledgers: None,
        projectors: None,
        relay_group: None,
        clock: Clock::system(),
    };
    telemetry::build_info("alone", Role::Relay.name());
    let ops = Ops { health, scrape: Scrape::new(metrics, sources), clock: Clock::system(), verifier: None };
    listening.open(http::ops(ops, EventIds::from_os()));
    tracing::info!(address = base(listening.address), "the relay tells how it is");
    Ok(Some(listening))
}
