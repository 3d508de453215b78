//! What telemetry costs: the server as it is, with traces at their usual ratio, beside one that tells nothing.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use metrics_exporter_prometheus::PrometheusBuilder;
use tidings::{
    config,
    serve::{Server, announce, cancel_on_signal},
    store::Store,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::{
    place::Place,
    process::{CONNECTIONS, Served, tokens},
    table::Table,
    workload::{BINARY, Bench},
};

/// Pairs of rounds, in turns.
const ROUNDS: usize = 6;
const ROUND_FOLLOWS: usize = 20_000;
/// Makes this program a server without telemetry.
const BARE: &str = "--bare-server";

/// Of the embedded mode: every stage is in one process there, so that none of the cost lies elsewhere.
pub(crate) async fn measure(table: &mut Table, place: Place) {
    if place != Place::Embedded {
        return;
    }
    let (told, bare) = (Bench::new(place).await, Bench::new(place).await);
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(told.folder.path());
    let telling = Served::started(command.env("TIDINGS__TELEMETRY__OTLP_ENDPOINT", collector().await));
    let mut command = Command::new(std::env::current_exe().unwrap());
    let silent = Served::started(command.arg(BARE).arg(bare.folder.path()));
    let (told_tokens, bare_tokens) = (tokens(told.folder.path()), tokens(bare.folder.path()));
    assert!(telling.is_ready().await && silent.is_ready().await);
    let (mut telling_seconds, mut silent_seconds) = (0.0, 0.0);
    for round in 0..ROUNDS {
        let first = (round * ROUND_FOLLOWS / CONNECTIONS * 2) as i64;
        // Whoever comes first in a pair finds another machine than who comes second.
        if round % 2 == 0 {
            telling_seconds += telling.follow(&told_tokens, first, ROUND_FOLLOWS).await;
        }
        silent_seconds += silent.follow(&bare_tokens, first, ROUND_FOLLOWS).await;
        if round % 2 == 1 {
            telling_seconds += telling.follow(&told_tokens, first, ROUND_FOLLOWS).await;
        }
    }
    let rate = |seconds: f64| (ROUNDS * ROUND_FOLLOWS) as f64 / seconds;
    let peer = ("without metrics and traces", rate(silent_seconds));
    table.ratio("follows through HTTP, with metrics and traces", rate(telling_seconds), peer, "0.95x");
}

/// Takes whatever is sent to it, and says so: what a collector does with spans is not what is measured.
async fn collector() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take(stream));
        }
    });
    format!("http://{address}")
}

async fn take(mut stream: TcpStream) {
    let mut request = Vec::new();
    loop {
        let head = request.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let whole = head + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if request.len() >= whole {
                request.drain(..whole);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                continue;
            }
        }
        if stream.read_buf(&mut request).await.is_ok_and(|count| count == 0) {
            return;
        }
    }
}

/// The folder of a server without telemetry, if this process is to be one.
pub(crate) fn folder_of_bare_server(mut arguments: impl Iterator<Item = String>) -> Option<PathBuf> {
    arguments.find(|argument| argument == BARE)?;
    arguments.next().map(PathBuf::from)
}

/// Serves as the binary does, with metrics that nobody keeps and no traces.
pub(crate) fn serve_bare(folder: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let data = ("TIDINGS__DATA__DIR".to_owned(), folder.to_str().unwrap().to_owned());
        let listen = ("TIDINGS__HTTP__LISTEN".to_owned(), "127.0.0.1:0".to_owned());
        let variables = std::env::vars().filter(|(name, _)| name.starts_with("TIDINGS__"));
        let config = config::load(None, variables.chain([data, listen])).unwrap();
        let shutdown = CancellationToken::new();
        cancel_on_signal(shutdown.clone());
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let server = Server::start_on(Store::open(&config).await.unwrap(), config, metrics).await.unwrap();
        announce(&server).unwrap();
        server.run(shutdown).await.unwrap();
    });
}
