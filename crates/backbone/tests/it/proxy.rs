//! A connection to a database server that can be cut in the middle of a commit.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tidings_testkit::database::{Database, Place};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// When the connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never hears of the commit.
    BeforeServer = 1,
    /// The server has committed; its answer is lost.
    AfterServer = 2,
}

pub(crate) struct Proxy {
    /// Where a database is reached through it.
    pub(crate) place: Place,
    armed: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) async fn before(database: &Database) -> Self {
        let Place::Url(url) = &database.place else { panic!("a file has no connection") };
        let (credentials, rest) = url.split_once('@').unwrap();
        let (server, name) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // What is encrypted cannot be looked at.
        let place = Place::Url(format!("{credentials}@127.0.0.1:{port}/{name}?ssl-mode=DISABLED"));
        let armed = Arc::new(AtomicU8::new(0));
        tokio::spawn(accept(listener, server.to_owned(), Arc::clone(&armed)));
        Self { place, armed }
    }

    /// Cuts the next connection that commits, once.
    pub(crate) fn arm(&self, cut: Cut) {
        self.armed.store(cut as u8, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, server: String, armed: Arc<AtomicU8>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass(client, TcpStream::connect(server.clone()).await.unwrap(), Arc::clone(&armed)));
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, armed: Arc<AtomicU8>) {
    let (mut request, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Some(count) = read.ok().filter(|count| *count > 0) else { return };
                // A query's first byte is 3.
                let commits = request[..count].windows(7).any(|word| word == b"\x03COMMIT");
                let cut = if commits { armed.swap(0, Ordering::SeqCst) } else { 0 };
                if cut == Cut::BeforeServer as u8 {
                    return;
                }
                server.write_all(&request[..count]).await.unwrap();
                if cut == Cut::AfterServer as u8 {
                    assert!(server.read(&mut answer).await.unwrap() > 0);
                    return;
                }
            }
            read = server.read(&mut answer) => {
                let Some(count) = read.ok().filter(|count| *count > 0) else { return };
                if client.write_all(&answer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
