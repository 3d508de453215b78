//! Connections: accepted within a limit, read within limits, closed without cutting a request off.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::telemetry;
use crate::{Error, Result, config};

/// Pause after the system refused a connection, for instance for want of file handles.
const REFUSED_GAP: Duration = Duration::from_millis(100);
/// The protocol library refuses larger heads without a word; the edge refuses smaller ones with a problem.
const HEAD_ROOM: usize = 8;

/// Serves HTTP/1.1 on a socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    http: config::Http,
}

impl Listener {
    /// Takes the address, so that its port is known before serving begins.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(http: config::Http) -> Result<Self> {
        let address = http.listen;
        let failed = |source| Error::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, http })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then lets the requests in flight end, for a limited time.
    pub async fn serve(self, router: Router, shutdown: CancellationToken) {
        let connections = Arc::new(Semaphore::new(self.http.connections_max));
        let graceful = GracefulShutdown::new();
        let protocol = protocol(&self.http);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.socket, &connections) => accepted,
                () = shutdown.cancelled() => break,
            };
            match accepted {
                Ok((stream, peer, place)) => {
                    let connection = Connection { stream, peer, _place: place };
                    tokio::spawn(connection.serve(protocol.clone(), router.clone(), graceful.watcher()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(REFUSED_GAP).await;
                }
            }
        }
        drop(self.socket);
        let time_max = Duration::from_millis(self.http.shutdown_timeout_ms);
        if tokio::time::timeout(time_max, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests were still in flight when their time to end was over");
        }
    }
}

/// Waits for room, then for a connection; what does not fit waits in the system's queue.
async fn accept(
    socket: &TcpListener,
    connections: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(connections).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((stream, peer, place))
}

fn protocol(http: &config::Http) -> http1::Builder {
    let head_bytes_max = http.header_bytes_max * HEAD_ROOM;
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(http.header_read_timeout_ms))
        .max_header_size(head_bytes_max)
        .max_buf_size(head_bytes_max);
    protocol
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    /// Given back when the connection ends.
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, protocol: http1::Builder, router: Router, watcher: Watcher) {
        // Answers are small and whole: waiting for more to send only delays them.
        if let Err(error) = self.stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let peer = self.peer;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let mut router = router.clone();
            let answered = router.call(request.map(Body::new));
            async move { Ok::<_, Infallible>(answered.await.unwrap_or_else(|never| match never {})) }
        });
        telemetry::connections(1.0);
        let served = watcher.watch(protocol.serve_connection(TokioIo::new(self.stream), service)).await;
        telemetry::connections(-1.0);
        if let Err(error) = served {
            // Clients that go away or talk nonsense are no fault of the server.
            tracing::debug!(error = tidings_backbone::Error::chain(&error), "a connection ended early");
        }
    }
}
