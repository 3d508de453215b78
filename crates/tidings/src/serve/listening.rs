//! A socket that is served from the moment it is there, whether or not there is anything behind it yet.

use std::net::SocketAddr;

use axum::Router;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::open_files;
use crate::{
    Error, Result, config,
    http::{Entrance, Listener, Readiness},
};

/// A socket that is being served.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    entrance: Entrance,
    serving: JoinHandle<()>,
    /// Ends the serving, and whoever waits in a request.
    pub(super) ending: CancellationToken,
}

impl Listening {
    /// Takes the address and tells of the start from now on.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub(super) async fn begin(http: &mut config::Http, readiness: &Readiness) -> Result<Self> {
        http.connections_max = open_files::connections_max(http.connections_max);
        let listener = Listener::bind(http.clone()).await?;
        let address = listener.address();
        let entrance = Entrance::new(readiness.clone());
        let ending = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(entrance.clone(), ending.clone()));
        Ok(Self { address, entrance, serving, ending })
    }

    /// Lets requests in.
    pub(super) fn open(&self, routes: Router) {
        self.entrance.open(routes);
    }

    /// Accepts nothing more, and lets requests in flight end.
    ///
    /// # Errors
    /// When the serving had ended by a fault.
    pub(super) async fn end(self) -> Result<()> {
        self.ending.cancel();
        let served = self.serving.await;
        served.map_err(|source| Error::PartEnded { part: "the listener", source: Some(source) })
    }
}
