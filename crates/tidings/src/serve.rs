//! `tidings serve`, `api`, `relay` and `project`: open what is kept, start the parts of the role, work, and
//! end the parts in an order that neither loses nor doubles.
//!
//! Shutdown: readiness fails, and after `http.shutdown_delay_ms` no connection is accepted; requests in
//! flight end, within a limited time; the ledgers decide what they accepted; projectors finish their
//! transaction; the database closes. Whatever is cut short anywhere here is taken up at the next start: a
//! command that was answered is committed, and an event that was not applied is still after its projector's
//! position.

mod alone;
mod listening;
mod open_files;
mod options;
mod parts;
mod patience;
mod relaying;
mod role;
mod running;
mod signals;

use std::{io::Write as _, net::SocketAddr, time::Duration};

use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

pub use alone::relay_alone;
pub use parts::{projector_runtime, reconciler};
pub use role::Role;
pub use signals::cancel_on_signal;

use self::{listening::Listening, running::Parts};
use crate::{
    Error, Result,
    auth::{LOGIN_LINK_MINUTES, Secrets, system_user},
    config::{Config, Mode},
    http,
    http::{AppState, Readiness},
    store::{ServerClaim, Store},
    telemetry::{Tracing, install_metrics},
};

/// A server that listens, before it lets requests in.
#[derive(Debug)]
pub struct Server {
    listening: Listening,
    app: AppState,
    parts: Parts,
    login_link: Option<String>,
}

impl Server {
    /// Takes the address, opens what is kept and starts the parts. Distributed, it waits for a database
    /// that is away, and tells so where it listens; nothing if `shutdown` came first.
    ///
    /// # Errors
    /// When the folder, the database or the address cannot be used, or another server works on the folder.
    pub async fn start(
        mut config: Config,
        role: Role,
        metrics: PrometheusHandle,
        shutdown: &CancellationToken,
    ) -> Result<Option<Self>> {
        if config.mode() == Mode::Embedded {
            let store = Store::open(&config).await?;
            return Self::start_on(store, config, metrics).await.map(Some);
        }
        let readiness = Readiness::default();
        let listening = Listening::begin(&mut config.http, &readiness).await?;
        let opening = || Store::open(&config);
        let Some(store) = patience::until_done("database", Some(&readiness), shutdown, opening).await? else {
            listening.end().await?;
            return Ok(None);
        };
        let claim = store.claim_for_server(Mode::Distributed)?;
        Self::start_behind(listening, role, store, config, metrics, readiness, claim).await.map(Some)
    }

    /// Starts, with every part, on what is open already: with a clock and ids of the caller's.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_on(store: Store, mut config: Config, metrics: PrometheusHandle) -> Result<Self> {
        let claim = store.claim_for_server(config.mode())?;
        let readiness = Readiness::default();
        let listening = Listening::begin(&mut config.http, &readiness).await?;
        Self::start_behind(listening, Role::All, store, config, metrics, readiness, claim).await
    }

    async fn start_behind(
        listening: Listening,
        role: Role,
        store: Store,
        config: Config,
        metrics: PrometheusHandle,
        readiness: Readiness,
        mut claim: ServerClaim,
    ) -> Result<Self> {
        claim.tell_address(listening.address)?;
        let (app, parts) = parts::start_server(role, store, config, metrics, readiness, claim).await?;
        let login_link = first_login_link(&app.login_links, listening.address).await?;
        Ok(Self { listening, app, parts, login_link })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// What routes use: to write and read beside HTTP, in this process.
    pub fn app(&self) -> &AppState {
        &self.app
    }

    /// The link that logs in to the console, at the first start on a data folder.
    pub fn login_link(&self) -> Option<&str> {
        self.login_link.as_deref()
    }

    /// Serves until `shutdown`, then ends every part in order.
    ///
    /// # Errors
    /// When a part ended although nobody asked it to; the others are ended in order first.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let Self { listening, app, parts, .. } = self;
        listening.open(http::router(app.clone()));
        let readiness = app.health.readiness.clone();
        let delay = Duration::from_millis(app.config.http.shutdown_delay_ms);
        run_until(&shutdown, &readiness, parts, Some(listening), &app.shutdown, delay).await
    }
}

/// Works until `shutdown` or until a part fails, then ends every part in order.
async fn run_until(
    shutdown: &CancellationToken,
    readiness: &Readiness,
    mut parts: Parts,
    listening: Option<Listening>,
    waits: &CancellationToken,
    delay: Duration,
) -> Result<()> {
    readiness.set(true);
    let failed = tokio::select! {
        () = shutdown.cancelled() => None,
        failed = parts.failed() => Some(failed),
    };
    readiness.set(false);
    if failed.is_none() {
        // Who asks for readiness sends requests here until it has asked again.
        tokio::time::sleep(delay).await;
    }
    // Requests that wait for something to happen are answered as things stand.
    waits.cancel();
    let served = match listening {
        Some(listening) => listening.end().await,
        None => Ok(()),
    };
    parts.end().await;
    failed.map_or(served, Err)
}

/// Serves on the command line: prints where, until SIGTERM or SIGINT.
///
/// # Errors
/// As [`Server::start`] and [`Server::run`].
pub async fn serve(config: Config, role: Role) -> Result<()> {
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone());
    let tracing = Tracing::start(&config, role)?;
    let Some(server) = Server::start(config, role, install_metrics(), &shutdown).await? else { return Ok(()) };
    announce(&server)?;
    let served = server.run(shutdown).await;
    tracing.end().await;
    served
}

/// Works without an API on the command line, until SIGTERM or SIGINT: as a relay, or for projections.
///
/// # Errors
/// When what it needs cannot be used, or a part ended although nobody asked it to.
pub async fn work(config: Config, role: Role) -> Result<()> {
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone());
    let (readiness, metrics) = (Readiness::default(), install_metrics());
    let tracing = Tracing::start(&config, role)?;
    let listening = match config.http.ops_listen {
        Some(listen) => {
            let mut http = config.http.clone();
            http.listen = listen;
            Some(Listening::begin(&mut http, &readiness).await?)
        }
        None => None,
    };
    let opening = || Store::open(&config);
    let Some(store) = patience::until_done("database", Some(&readiness), &shutdown, opening).await? else {
        return Ok(());
    };
    let ids = store.ids.clone();
    let (ops, parts) = parts::start_worker(role, store, &config, metrics, readiness.clone())?;
    let place = listening.as_ref().map(|listening| base(listening.address));
    if let Some(listening) = &listening {
        listening.open(http::ops(ops, ids));
    }
    print(&match place {
        Some(place) => format!("Tidings {} is at {place}\n", role.name()),
        None => format!("Tidings {} runs; `http.ops_listen` gives it an address to tell how it is\n", role.name()),
    })?;
    // Nobody sends requests to what has no API.
    let worked = run_until(&shutdown, &readiness, parts, listening, &CancellationToken::new(), Duration::ZERO).await;
    tracing.end().await;
    worked
}

/// Prints the address, and the login link at first start, to standard output and nowhere else: a
/// log may be read by those whom the link does not concern.
pub fn announce(server: &Server) -> Result<()> {
    let mut lines = format!("Tidings is at {}\n", base(server.address()));
    if let Some(link) = server.login_link() {
        lines.push_str(&format!("Log in to the console once, within {LOGIN_LINK_MINUTES} minutes: {link}\n"));
    } else {
        lines.push_str("A link that logs in to the console: `tidings login-link`, with the same `--data`\n");
    }
    print(&lines)
}

fn print(lines: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|source| Error::System { doing: "printing the address", source })
}

/// The link that logs in with `secret` on a server at `address`.
pub fn login_link(address: SocketAddr, secret: &str) -> String {
    format!("{}/login?link={secret}", base(address))
}

/// The URL of a server at `address`. One on every address of the machine is spoken to on its own.
pub fn base(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("http://127.0.0.1:{}", v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("http://[::1]:{}", v6.port()),
        address => format!("http://{address}"),
    }
}

/// For whom a login link speaks: whoever has it printed, as the audit names him.
pub fn login_subject() -> String {
    format!("link:{}", system_user())
}

async fn first_login_link(links: &Secrets, address: SocketAddr) -> Result<Option<String>> {
    let links = links.clone();
    let issued = tokio::task::spawn_blocking(move || {
        if links.is_new() { links.issue(LOGIN_LINK_MINUTES, &login_subject()).map(Some) } else { Ok(None) }
    });
    let issued = issued.await.map_err(|source| Error::PartEnded { part: "making a link", source: Some(source) })?;
    Ok(issued?.map(|secret| login_link(address, &secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_address_is_spoken_to_on_this_machine() {
        for (address, expected) in [
            ("0.0.0.0:7870", "http://127.0.0.1:7870/login?link=x"),
            ("[::]:7870", "http://[::1]:7870/login?link=x"),
            ("127.0.0.1:1", "http://127.0.0.1:1/login?link=x"),
            ("[::1]:1", "http://[::1]:1/login?link=x"),
        ] {
            assert_eq!(login_link(address.parse().unwrap(), "x"), expected);
        }
    }
}
