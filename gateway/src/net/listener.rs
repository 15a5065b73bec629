//! Binding, and accepting with back-off. A connection's place under the limit is taken before it
//! is accepted and travels with it. Must not know TLS, nor what is spoken.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tracing::warn;

/// How long a peer may be silent before the system asks whether it is still there. A peer that
/// reads slowly answers; one whose link is cut does not, and is dropped after about two minutes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15));

/// Waits between attempts when the system has no more descriptors.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A bound socket, and the places for its connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    places: Arc<Semaphore>,
}

/// A connection before its handshake.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Listener {
    /// Binds `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// What the system says, with the address.
    pub async fn bind(address: SocketAddr, max_connections: usize) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
        };
        let socket = TcpListener::bind(address).await.map_err(named)?;
        let address = socket.local_addr().map_err(named)?;
        Ok(Self {
            socket,
            address,
            places: Arc::new(Semaphore::new(max_connections)),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. Waits for a free place first: at the limit new connections stay in
    /// the system's queue instead of costing memory here. Cancel safe.
    pub(crate) async fn accept(&self) -> Accepted {
        let mut pause = FIRST_PAUSE;
        loop {
            // The semaphore is never closed, so this is always a permit.
            let Ok(permit) = Arc::clone(&self.places).acquire_owned().await else {
                continue;
            };
            match self.socket.accept().await {
                Ok((socket, peer)) => {
                    prepare(&socket);
                    return Accepted {
                        socket,
                        peer,
                        permit,
                    };
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    warn!(%error, ?pause, "cannot accept connections for now");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// Options that help a connection; one that is gone already shows itself on its first read.
fn prepare(socket: &TcpStream) {
    let _ = socket.set_nodelay(true);
    let _ = SockRef::from(socket).set_tcp_keepalive(&KEEPALIVE);
}

/// Whether only the connection that was about to be accepted is broken.
fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn at_the_limit_a_connection_waits_for_a_place() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1)
            .await
            .unwrap();
        let _first = TcpStream::connect(listener.address()).await.unwrap();
        let _second = TcpStream::connect(listener.address()).await.unwrap();

        let accepted = listener.accept().await;
        let waiting = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(waiting.is_err(), "the only place is taken");
        drop(accepted);
        tokio::time::timeout(Duration::from_secs(5), listener.accept())
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 1)
            .await
            .unwrap();
        let error = Listener::bind(listener.address(), 1).await.unwrap_err();
        assert!(
            error.to_string().contains(&listener.address().to_string()),
            "{error}"
        );
    }
}
