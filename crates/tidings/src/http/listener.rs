//! Connections: accepted within a limit, read within limits, closed without cutting a request off.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::ConnectInfo};
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

use super::{ops::Entrance, telemetry};
use crate::{Error, Result, config};

/// Pause after the system refused a connection, for instance for want of file handles.
const REFUSED_GAP: Duration = Duration::from_millis(100);
/// The protocol library refuses heads that are so many times too large without a word; the edge refuses
/// smaller ones with a problem. It is also what each of many half-sent heads may take up in memory.
const HEAD_ROOM: usize = 2;
/// One header is allowed for each so many bytes of the head, so that their bytes are too many before
/// their number is. The library makes room for all of them at each request, so it is not more.
const BYTES_PER_HEADER: usize = 64;
/// Its own limit, and above it what the type that holds headers bears with ease.
const HEADERS: std::ops::RangeInclusive<usize> = 100..=4_096;
/// Time that a connection without a request is given to begin one, once the server shuts down.
const SILENT_TIME_MAX: Duration = Duration::from_secs(1);

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
    pub async fn serve(self, entrance: Entrance, shutdown: CancellationToken) {
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
                    let connection = Connection { stream, peer, shutdown: shutdown.clone(), _place: place };
                    tokio::spawn(connection.serve(protocol.clone(), entrance.clone(), graceful.watcher()));
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
        .max_headers((http.header_bytes_max / BYTES_PER_HEADER).clamp(*HEADERS.start(), *HEADERS.end()))
        .max_header_size(head_bytes_max)
        .max_buf_size(head_bytes_max);
    protocol
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    shutdown: CancellationToken,
    /// Given back when the connection ends.
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, protocol: http1::Builder, entrance: Entrance, watcher: Watcher) {
        // Answers are small and whole: waiting for more to send only delays them.
        if let Err(error) = self.stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let peer = self.peer;
        let steps = Steps::default();
        let counted = steps.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let mut router = entrance.router();
            let answered = router.call(request.map(Body::new));
            let in_request = counted.begin();
            async move {
                let answer = answered.await.unwrap_or_else(|never| match never {});
                drop(in_request);
                Ok::<_, Infallible>(answer)
            }
        });
        telemetry::connections(1.0);
        tokio::select! {
            served = watcher.watch(protocol.serve_connection(TokioIo::new(self.stream), service)) => {
                if let Err(error) = served {
                    // Clients that go away or talk nonsense are no fault of the server.
                    tracing::debug!(error = tidings_backbone::Error::chain(&error), "a connection ended early");
                }
            }
            () = steps.silent_after(&self.shutdown) => tracing::debug!("a connection ended without a request"),
        }
        telemetry::connections(-1.0);
    }
}

/// Counts the beginnings and ends of the requests of a connection, which come one after another: an
/// odd number is in the midst of one.
#[derive(Clone, Debug, Default)]
struct Steps(Arc<AtomicU64>);

impl Steps {
    fn begin(&self) -> InRequest {
        self.0.fetch_add(1, Ordering::SeqCst);
        InRequest(self.clone())
    }

    /// Returns when, after `shutdown`, nothing was heard for a while: a head that was half sent would
    /// hold up the end of the server, and nobody waits for an answer to it.
    async fn silent_after(&self, shutdown: &CancellationToken) {
        shutdown.cancelled().await;
        loop {
            let before = self.0.load(Ordering::SeqCst);
            tokio::time::sleep(SILENT_TIME_MAX).await;
            if before.is_multiple_of(2) && self.0.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }
}

/// A request is being served until this is dropped, also when its client goes away.
struct InRequest(Steps);

impl Drop for InRequest {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}
