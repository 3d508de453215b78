//! A way to a database server that can be cut in the middle of an answer, and frozen.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use tidings_backbone::relay::Options;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use super::world::World;

/// Stands between a relay and the server of a world.
pub(crate) struct Wire {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The next answer that holds this text is cut before it, once.
    cut_before: Mutex<Option<Vec<u8>>>,
    cuts: AtomicU64,
    is_frozen: watch::Sender<bool>,
}

impl Wire {
    pub(crate) async fn to(world: &World) -> Self {
        let (credentials, server) = world.address.rsplit_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("{credentials}@{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let (server, accepting) = (server.to_owned(), state.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let cut = CancellationToken::new();
                tokio::spawn(pass(from_client, to_server, accepting.clone(), cut.clone(), false));
                tokio::spawn(pass(from_server, to_client, accepting.clone(), cut, true));
            }
        });
        Self { address, state }
    }

    /// Options of a relay whose source is reached through it.
    pub(crate) fn options(&self, world: &World) -> Options {
        Options { source: format!("{}/{}", self.address, world.database), ..world.options() }
    }

    pub(crate) fn cut_before(&self, text: &str) {
        *self.state.cut_before.lock().unwrap() = Some(text.as_bytes().to_vec());
    }

    /// How often it was cut.
    pub(crate) fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Nothing passes any more, and nobody is told.
    pub(crate) fn freeze(&self) {
        self.state.is_frozen.send_replace(true);
    }

    /// All that was held back passes.
    pub(crate) fn thaw(&self) {
        self.state.is_frozen.send_replace(false);
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: Arc<State>,
    cut: CancellationToken,
    is_answer: bool,
) {
    let mut frozen = state.is_frozen.subscribe();
    let mut bytes = vec![0; 65_536];
    let mut passed = Vec::new();
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            () = cut.cancelled() => return,
        };
        let Some(count) = read.ok().filter(|count| *count > 0) else { break };
        if frozen.wait_for(|is_frozen| !is_frozen).await.is_err() {
            break;
        }
        let before = if is_answer { state.is_to_be_cut(&mut passed, &bytes[..count]) } else { None };
        if to.write_all(&bytes[..before.unwrap_or(count)]).await.is_err() || before.is_some() {
            break;
        }
    }
    cut.cancel();
}

impl State {
    /// How much of an answer's next bytes still passes if it is to be cut in them. `passed` is the end of
    /// what came before.
    fn is_to_be_cut(&self, passed: &mut Vec<u8>, bytes: &[u8]) -> Option<usize> {
        let mut wanted = self.cut_before.lock().unwrap();
        let text = wanted.as_ref()?;
        let before = passed.len();
        passed.extend(bytes);
        let Some(at) = passed.windows(text.len()).position(|window| window == text) else {
            passed.drain(..passed.len().saturating_sub(text.len()));
            return None;
        };
        *wanted = None;
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Some(at.saturating_sub(before))
    }
}
