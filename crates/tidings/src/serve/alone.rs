//! A relay alone: any outbox, any sink, and nothing else of Tidings.

use metrics_exporter_prometheus::PrometheusHandle;
use tidings_backbone::{Clock, EventIds, relay};
use tokio_util::sync::CancellationToken;

use super::{base, cancel_on_signal, install_metrics, listening::Listening, run_until, running::Parts};
use crate::{
    Result,
    config::Http,
    http::{self, Health, Ops, Readiness},
};

/// Relays as a file of its own describes it, until SIGTERM or SIGINT. The standard output belongs to the sink.
///
/// # Errors
/// When the configuration has what cannot be, or the relay needs somebody's decision.
pub async fn relay_alone(config: &relay::Config, http: &Http) -> Result<()> {
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone());
    let (readiness, metrics) = (Readiness::default(), install_metrics());
    let relay = config.relay(Clock::system())?;
    let listening = listening(http, &readiness, &relay, metrics.clone()).await?;
    let mut parts = Parts::new(None, metrics);
    let ending = parts.shutdown.clone();
    parts.watched.push(("the relay", tokio::spawn(async move { Ok(relay.run(ending).await?) })));
    run_until(&shutdown, &readiness, parts, listening, &CancellationToken::new()).await
}

/// Who gives it an address to tell how it is chooses who can reach that: there is no key here that tokens
/// could be signed with.
async fn listening(
    http: &Http,
    readiness: &Readiness,
    relay: &relay::Relay,
    metrics: PrometheusHandle,
) -> Result<Option<Listening>> {
    let Some(listen) = http.ops_listen else { return Ok(None) };
    let mut http = http.clone();
    http.listen = listen;
    let listening = Listening::begin(&mut http, readiness).await?;
    let health = Health::of_relay(readiness.clone(), relay.handle());
    let ops = Ops { health, metrics, projectors: None, clock: Clock::system(), verifier: None };
    listening.open(http::ops(ops, EventIds::from_os()));
    tracing::info!(address = base(listening.address), "the relay tells how it is");
    Ok(Some(listening))
}
