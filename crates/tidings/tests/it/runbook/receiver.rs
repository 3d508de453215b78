//! Somebody who is told something by POST, and answers what the test wants.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// Where something is sent to. It listens as long as the test runs.
pub(super) struct Receiver {
    pub(super) url: String,
    status: Arc<AtomicU16>,
}

impl Receiver {
    /// One who answers with this status.
    pub(super) async fn answering(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let status = Arc::new(AtomicU16::new(status));
        let answered = Arc::clone(&status);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever sends and goes away is no fault of the receiver's.
                drop(answer(stream, &answered).await);
            }
        });
        Self { url, status }
    }

    /// Answers so from now on.
    pub(super) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

async fn answer(stream: TcpStream, status: &AtomicU16) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while stream.read_line(&mut line).await? > 2 {
        if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).await?;
    let status = status.load(Ordering::Relaxed);
    let answer = format!("HTTP/1.1 {status} Told\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await
}
