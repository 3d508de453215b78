//! The real binary: cold start, idle memory, requests per second.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    place::Place,
    table::Table,
    workload::{BINARY, Bench, USERS},
};

pub(crate) const CONNECTIONS: usize = 256;
const REQUESTS: usize = 60_000;

pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        Self::started(&mut command)
    }

    /// A server that `command` starts and that says where it is.
    pub(crate) fn started(command: &mut Command) -> Self {
        let mut child = command
            // The bucket is not what is measured here.
            .env("TIDINGS__RATE__FOLLOW_CAPACITY", "1000000")
            .env("TIDINGS__LOG__LEVEL", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(address) = line.strip_prefix("Tidings is at http://") {
                break address.to_owned();
            }
        };
        Self { child, address }
    }

    async fn answer(&self, request: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        answer
    }

    /// Seconds that so many follows take, each connection's from the user `first` on.
    pub(crate) async fn follow(&self, tokens: &[String], first: i64, count: usize) -> f64 {
        let left = Arc::new(AtomicUsize::new(count));
        let start = Instant::now();
        let clients: Vec<_> = tokens
            .iter()
            .enumerate()
            .map(|(user, token)| {
                let (address, token, left) = (self.address.clone(), token.clone(), Arc::clone(&left));
                tokio::spawn(client(address, user, token, left, first))
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        start.elapsed().as_secs_f64()
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let request = "GET /health/ready HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n";
        self.answer(request).await.starts_with(b"HTTP/1.1 200")
    }

    fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Of the embedded mode: what a process of the others takes is the same but for what it waits for.
pub(crate) async fn measure(table: &mut Table, place: Place) {
    if place != Place::Embedded {
        return;
    }
    let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (first, served) = cold_start(fresh.path()).await;
    drop(served);
    let (again, served) = cold_start(fresh.path()).await;
    table.figure(
        "cold start to first answer",
        format!("{again:.0} ms"),
        format!("{first:.0} ms on a new data folder"),
        "< 200 ms",
    );
    // Idle is what remains some seconds after the start.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = served.resident_mb();
    drop(served);
    let bench = Bench::new(place).await;
    let (rate, loaded) = requests(&bench).await;
    table.figure(
        "follows through HTTP",
        format!("{rate:.0} requests/s"),
        format!("{CONNECTIONS} connections, client on the same cores"),
        "beside the ledger",
    );
    let loaded = format!("{loaded:.0} MB after {REQUESTS} follows");
    table.figure("memory, resident", format!("{idle:.0} MB idle"), loaded, "< 64 MB idle");
}

async fn cold_start(data: &Path) -> (f64, Served) {
    let start = Instant::now();
    let served = Served::start(data);
    while !served.is_ready().await {}
    (start.elapsed().as_secs_f64() * 1_000.0, served)
}

/// Requests per second, and resident memory after them.
async fn requests(bench: &Bench) -> (f64, f64) {
    let served = Served::start(bench.folder.path());
    let tokens = tokens(bench.folder.path());
    assert!(served.is_ready().await);
    let seconds = served.follow(&tokens, 0, REQUESTS).await;
    (REQUESTS as f64 / seconds, served.resident_mb())
}

/// A token for each connection.
pub(crate) fn tokens(data: &Path) -> Vec<String> {
    (0..CONNECTIONS).map(|user| token(data, user)).collect()
}

fn token(data: &Path, user: usize) -> String {
    let mut command = Command::new(BINARY);
    command.args(["token", "--user", &user.to_string(), "--data"]).arg(data);
    String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
}

/// One keep-alive connection that follows one user after the other.
async fn client(address: String, user: usize, token: String, left: Arc<AtomicUsize>, first: i64) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 4_096];
    for target in (first..USERS).filter(|target| *target != user as i64) {
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            return;
        }
        let request = format!(
            "PUT /v1/me/following/{target} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // Answers are small and requests are not pipelined: one answer ends where the buffer ends.
        let mut length = 0;
        loop {
            length += stream.read(&mut buffer[length..]).await.unwrap();
            let answer = &buffer[..length];
            if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
                assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(answer));
                if length >= end + 4 + content_length(&answer[..end]) {
                    break;
                }
            }
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:").map(str::trim));
    line.map_or(0, |length| length.parse().unwrap())
}
