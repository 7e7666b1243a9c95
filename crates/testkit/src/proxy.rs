//! A TCP proxy that can be cut: how a test loses a connection while both ends go on living.

use ambient::Tasks;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections to one server until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    lines: Arc<Mutex<Lines>>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Lines {
    /// The connections that are forwarded now; a new group after each cut.
    connections: Tasks,
    cut: bool,
}

impl Proxy {
    /// A proxy to a server at a URL such as `http://127.0.0.1:2379`.
    pub async fn to(url: &str) -> Self {
        let server = url.split_once("://").map_or(url, |(_, server)| server).to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let tasks = Tasks::new();
        let lines = Arc::new(Mutex::new(Lines { connections: tasks.child(), cut: false }));
        let shared = lines.clone();
        tasks.spawn_until_stopped("proxy", async move {
            while let Ok((client, _)) = listener.accept().await {
                let lines = shared.lock();
                if !lines.cut {
                    lines.connections.spawn_until_stopped("proxied", forward(client, server.clone()));
                }
            }
        });
        Proxy { address, lines, tasks }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Drops every connection, and every new one until [`Proxy::mend`]. Nothing passes any more when this returns.
    pub async fn cut(&self) {
        let connections = {
            let mut lines = self.lines.lock();
            lines.cut = true;
            std::mem::replace(&mut lines.connections, self.tasks.child())
        };
        connections.stop().await;
    }

    pub fn mend(&self) {
        self.lines.lock().cut = false;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn forward(mut client: TcpStream, server: String) {
    // An error ends the connection, which is all that either end could be told.
    if let Ok(mut server) = TcpStream::connect(server).await {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}
