//! `tidings serve`: opens the data folder, starts the parts, serves, and ends them in an order that
//! neither loses nor doubles.
//!
//! Shutdown: readiness fails and no connection is accepted; requests in flight end, within a limited
//! time; the ledgers decide what they accepted; projectors finish their transaction; the database
//! closes. Whatever is cut short anywhere here is taken up at the next start: a command that was
//! answered is committed, and an event that was not applied is still after its projector's position.

mod open_files;
mod options;
mod parts;
mod signals;

use std::{io::Write as _, net::SocketAddr, path::PathBuf};

use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

pub use parts::{install_metrics, projector_runtime};
pub use signals::cancel_on_signal;

use crate::{
    Error, Result,
    auth::{LOGIN_LINK_MINUTES, Secrets},
    config::Config,
    http,
    http::{AppState, Listener},
    store::Store,
};

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The configuration in effect.
    pub config: Config,
    /// The data folder.
    pub data: PathBuf,
}

/// A server that listens, before it serves.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    app: AppState,
    parts: parts::Parts,
    login_link: Option<String>,
}

impl Server {
    /// Opens the data folder, takes the address and starts the parts behind it.
    ///
    /// # Errors
    /// When the folder, its database or the address cannot be used, or another server works on
    /// the folder.
    pub async fn start(options: Options, metrics: PrometheusHandle) -> Result<Self> {
        let store = Store::open(&options.data).await?;
        Self::start_on(store, options.config, metrics).await
    }

    /// Starts on a folder that is open already: with a clock and ids of the caller's.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_on(store: Store, mut config: Config, metrics: PrometheusHandle) -> Result<Self> {
        let mut claim = store.claim_for_server()?;
        config.http.connections_max = open_files::connections_max(config.http.connections_max);
        let listener = Listener::bind(config.http.clone()).await?;
        claim.tell_address(listener.address())?;
        let (app, parts) = parts::start(store, config, metrics, claim).await?;
        let login_link = first_login_link(&app.login_links, listener.address()).await?;
        Ok(Self { listener, app, parts, login_link })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
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
        let Self { listener, app, mut parts, .. } = self;
        let router = http::router(app.clone());
        app.readiness.set(true);
        let ending = app.shutdown.clone();
        let serving = tokio::spawn(listener.serve(router, ending.clone()));
        let failed = tokio::select! {
            () = shutdown.cancelled() => None,
            failed = parts.failed() => Some(failed),
        };
        app.readiness.set(false);
        ending.cancel();
        let served = serving.await.map_err(|source| Error::PartEnded { part: "the listener", source: Some(source) });
        parts.end().await;
        failed.map_or(served, Err)
    }
}

/// Serves on the command line: prints where, until SIGTERM or SIGINT.
///
/// # Errors
/// As [`Server::start`] and [`Server::run`].
pub async fn serve(options: Options) -> Result<()> {
    let server = Server::start(options, install_metrics()).await?;
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone());
    announce(&server)?;
    server.run(shutdown).await
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

async fn first_login_link(links: &Secrets, address: SocketAddr) -> Result<Option<String>> {
    let links = links.clone();
    let issued =
        tokio::task::spawn_blocking(
            move || {
                if links.is_new() { links.issue(LOGIN_LINK_MINUTES).map(Some) } else { Ok(None) }
            },
        );
    let issued = issued.await.map_err(|source| Error::PartEnded { part: "making a link", source: Some(source) })?;
    Ok(issued?.map(|(secret, _)| login_link(address, &secret)))
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
