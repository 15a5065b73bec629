//! The one accept loop: connection, task, TLS handshake under a time-out, door. Owns
//! [`ServeConnection`], which every door implements. Must not know what a door speaks.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use super::drain::Drain;
use super::listener::{Accepted, Listener};
use super::tls::TlsAcceptor;

/// How long a door has, once cancelled, to break its streams before its task is dropped.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A door: what is done with the bytes of one connection.
#[async_trait]
pub trait ServeConnection: Send + Sync {
    /// Serves `connection` to its end.
    ///
    /// On [`Drain::stopping`] the door takes no new request and ends after those that run; on
    /// [`Drain::cancelled`] it breaks what runs. A future that goes on is dropped soon after.
    async fn serve(&self, connection: Connection, drain: Drain);
}

/// A connection that is through its handshake.
#[derive(Debug)]
pub struct Connection {
    /// The bytes. Dropping it closes the connection and gives its place back.
    pub io: Stream,
    /// Who is at the other end.
    pub peer: SocketAddr,
}

/// The bytes of a connection, together with its place under the limit of connections.
pub struct Stream {
    inner: Box<dyn Io>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// What a stream can be made of.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Stream {
    /// A stream over any bytes, without a place under a limit: for a socket in memory.
    pub fn new(io: impl Io + 'static) -> Self {
        Self {
            inner: Box::new(io),
            _permit: None,
        }
    }

    fn with_permit(io: impl Io + 'static, permit: OwnedSemaphorePermit) -> Self {
        Self {
            inner: Box::new(io),
            _permit: Some(permit),
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Whether a listener speaks TLS.
pub enum Security {
    /// Bytes as they are: for the administrator's listener alone.
    Plain,
    /// TLS, with a bound on the time of a handshake.
    Tls(TlsAcceptor, Duration),
}

/// Accepts connections of `listener` for `door` until `drain` stops.
pub async fn serve(
    listener: Listener,
    security: Security,
    door: Arc<dyn ServeConnection>,
    drain: Drain,
) {
    let security = Arc::new(security);
    loop {
        let accepted = tokio::select! {
            biased;
            () = drain.stopping() => break,
            accepted = listener.accept() => accepted,
        };
        let (security, door, context) = (Arc::clone(&security), Arc::clone(&door), drain.clone());
        drain.spawn(async move { connect(accepted, &security, door.as_ref(), context).await });
    }
    info!(address = %listener.address(), "no longer accepting connections");
}

/// One connection, from its first byte to its last.
async fn connect(
    accepted: Accepted,
    security: &Security,
    door: &dyn ServeConnection,
    drain: Drain,
) {
    let Accepted {
        socket,
        peer,
        permit,
    } = accepted;
    let shaken = tokio::select! {
        () = drain.stopping() => return,
        shaken = shake_hands(socket, security) => shaken,
    };
    let io = match shaken {
        Ok(Shaken::Plain(io)) => Stream::with_permit(io, permit),
        Ok(Shaken::Tls(io)) => Stream::with_permit(io, permit),
        // Scanners and health checks make these all day long.
        Err(error) => return debug!(%peer, %error, "handshake failed"),
    };
    let end = drain.clone();
    tokio::select! {
        () = door.serve(Connection { io, peer }, drain) => {}
        () = async { end.cancelled().await; sleep(LAST_WORDS).await } => debug!(%peer, "connection dropped"),
    }
}

enum Shaken {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

async fn shake_hands(socket: TcpStream, security: &Security) -> io::Result<Shaken> {
    match security {
        Security::Plain => Ok(Shaken::Plain(socket)),
        Security::Tls(acceptor, at_most) => {
            let stream = timeout(*at_most, acceptor.accept(socket)).await??;
            Ok(Shaken::Tls(Box::new(stream)))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rustls::{ClientConfig, RootCertStore};
    use rustls_pki_types::ServerName;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::net::tls::{Source, Tls};

    /// Sends back what comes until the connection, or everything, ends.
    struct Echo;

    #[async_trait]
    impl ServeConnection for Echo {
        async fn serve(&self, connection: Connection, drain: Drain) {
            let (mut reader, mut writer) = tokio::io::split(connection.io);
            tokio::select! {
                _ = tokio::io::copy(&mut reader, &mut writer) => {}
                () = drain.cancelled() => {}
            }
        }
    }

    /// Never ends by itself.
    struct Stubborn;

    #[async_trait]
    impl ServeConnection for Stubborn {
        async fn serve(&self, _connection: Connection, _drain: Drain) {
            std::future::pending().await
        }
    }

    async fn start(
        security: Security,
        door: impl ServeConnection + 'static,
    ) -> (SocketAddr, Drain) {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1)
            .await
            .unwrap();
        let (address, drain) = (listener.address(), Drain::new());
        drain.spawn(serve(listener, security, Arc::new(door), drain.clone()));
        (address, drain)
    }

    async fn echoed(io: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> [u8; 4] {
        let mut answer = [0; 4];
        io.write_all(b"ping").await.unwrap();
        io.read_exact(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn bytes_pass_through_tls_and_alpn_prefers_http2() {
        let tls = Tls::load(Source::InMemory).unwrap();
        let (address, drain) =
            start(Security::Tls(tls.acceptor(), Duration::from_secs(10)), Echo).await;
        let mut roots = RootCertStore::empty();
        roots.add(tls.certificate().der).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        for name in ["localhost", "127.0.0.1"] {
            let socket = TcpStream::connect(address).await.unwrap();
            let mut stream = connector
                .connect(ServerName::try_from(name).unwrap(), socket)
                .await
                .unwrap();
            assert_eq!(&echoed(&mut stream).await, b"ping");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        }
        drain.cancel();
        assert!(drain.finished_within(Duration::from_secs(10)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_dropped_in_time_and_gives_its_place_back() {
        let tls = Tls::load(Source::InMemory).unwrap();
        let (address, _drain) =
            start(Security::Tls(tls.acceptor(), Duration::from_secs(10)), Echo).await;
        // There is one place: the second connection is served only when the first one's is back.
        for _ in 0..2 {
            let mut silent = TcpStream::connect(address).await.unwrap();
            assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn what_is_no_tls_is_refused() {
        let tls = Tls::load(Source::InMemory).unwrap();
        let (address, _drain) =
            start(Security::Tls(tls.acceptor(), Duration::from_secs(10)), Echo).await;
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = Vec::new();
        // A reset is as good an end as a closed connection.
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }

    #[tokio::test]
    async fn stopping_closes_the_listener_and_lets_connections_run() {
        let (address, drain) = start(Security::Plain, Echo).await;
        let mut open = TcpStream::connect(address).await.unwrap();
        assert_eq!(&echoed(&mut open).await, b"ping");
        drain.stop();
        assert_eq!(&echoed(&mut open).await, b"ping");
        while drain.running() > 1 {
            tokio::task::yield_now().await;
        }
        TcpStream::connect(address).await.unwrap_err();
        drop(open);
        assert!(drain.finished_within(Duration::from_secs(10)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_door_that_does_not_end_is_dropped_after_cancellation() {
        let (address, drain) = start(Security::Plain, Stubborn).await;
        let mut open = TcpStream::connect(address).await.unwrap();
        while drain.running() < 2 {
            tokio::task::yield_now().await;
        }
        drain.stop();
        assert!(!drain.finished_within(Duration::from_secs(60)).await);
        drain.cancel();
        assert!(drain.finished_within(LAST_WORDS * 2).await);
        assert_eq!(open.read(&mut [0; 8]).await.unwrap_or(0), 0);
    }
}
