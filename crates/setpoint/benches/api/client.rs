//! A client that costs as little as possible: HTTP/1.1 over TLS with a client certificate, one request at a time.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where the server is, and who we are.
#[derive(Clone)]
pub(crate) struct Target {
    pub address: String,
    connector: TlsConnector,
}

impl Target {
    /// From the kubeconfig that the server has written.
    pub(crate) fn read(kubeconfig: &std::path::Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig can be read");
        let config: serde_json::Value = serde_json::from_str(&text).expect("the kubeconfig is JSON");
        let decode = |value: &serde_json::Value| {
            object::base64::decode(value.as_str().expect("a text")).expect("the kubeconfig holds base64")
        };
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let mut roots = rustls::RootCertStore::empty();
        let authority = decode(&cluster["certificate-authority-data"]);
        roots.add(CertificateDer::from_pem_slice(&authority).expect("a certificate")).expect("an authority");
        let certificate =
            CertificateDer::from_pem_slice(&decode(&user["client-certificate-data"])).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(&decode(&user["client-key-data"])).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate.into_owned()], key)
            .expect("a client certificate");
        let address = cluster["server"].as_str().expect("a server").trim_start_matches("https://").to_owned();
        Target { address, connector: TlsConnector::from(Arc::new(config)) }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).await.expect("the server accepts connections");
        stream.set_nodelay(true).expect("a socket option");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = self.connector.connect(name, stream).await.expect("the handshake succeeds");
        Connection { stream, buffer: Vec::with_capacity(256 << 10) }
    }
}

pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: bench\r\naccept: application/json\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Connection {
    /// Sends a request and reads its answer: the code, and how many bytes the body has.
    pub(crate) async fn send(&mut self, request: &[u8]) -> (u16, usize) {
        self.stream.write_all(request).await.expect("the request can be sent");
        let (code, length, start) = self.head().await;
        match length {
            Some(length) => (code, self.whole(start, length).await.len()),
            None => (code, self.chunks(start).await),
        }
    }

    /// Sends a request whose answer is short, and reads it.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.stream.write_all(request).await.expect("the request can be sent");
        let (_, length, start) = self.head().await;
        self.whole(start, length.expect("a short answer comes in one piece")).await
    }

    async fn whole(&mut self, start: usize, length: usize) -> Vec<u8> {
        while self.buffer.len() < start + length {
            self.read().await;
        }
        self.buffer.drain(..start + length).skip(start).collect()
    }

    /// Sends a request whose answer is read by [`Connection::events`].
    pub(crate) async fn open(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect("the request can be sent");
        let (code, _, start) = self.head().await;
        assert_eq!(code, 200);
        self.buffer.drain(..start);
    }

    /// Reads on until `count` lines have come.
    pub(crate) async fn events(&mut self, count: usize) {
        let mut missing = isize::try_from(count).expect("a small number");
        loop {
            // Every event ends in a newline; the lines around a chunk end in a carriage return and a newline.
            let count = |wanted: u8| self.buffer.iter().filter(|byte| **byte == wanted).count().cast_signed();
            missing -= count(b'\n') - count(b'\r');
            self.buffer.clear();
            if missing <= 0 {
                return;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let read = self.stream.read_buf(&mut self.buffer).await.expect("the answer can be read");
        assert!(read > 0, "the server has closed the connection");
    }

    /// Code, content length if it is known, and where the body starts.
    async fn head(&mut self) -> (u16, Option<usize>, usize) {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end]).expect("a head is text");
                let code = head[9..12].parse().expect("a code");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                return (code, length.map(|length| length.parse().expect("a length")), end + 4);
            }
            self.read().await;
        }
    }

    /// Reads a body in chunks and forgets it.
    async fn chunks(&mut self, start: usize) -> usize {
        self.buffer.drain(..start);
        let mut total = 0;
        loop {
            let end = loop {
                match self.buffer.windows(2).position(|window| window == b"\r\n") {
                    Some(end) => break end,
                    None => self.read().await,
                }
            };
            let size = std::str::from_utf8(&self.buffer[..end]).expect("a size is text");
            let size = usize::from_str_radix(size, 16).expect("a size");
            self.buffer.drain(..end + 2);
            let mut left = size + 2;
            while left > 0 {
                let here = left.min(self.buffer.len());
                self.buffer.drain(..here);
                left -= here;
                if left > 0 {
                    self.read().await;
                }
            }
            total += size;
            if size == 0 {
                return total;
            }
        }
    }
}
