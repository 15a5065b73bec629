//! A TCP proxy that is as bad as a real network: it slows down, cuts, resets or swallows what
//! comes from the gateway. Owns the fault that is in force. Must not know what is carried.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to the bytes on their way to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// They pass at so many bytes a second.
    Throttle(u64),
    /// After so many bytes the connection is closed, as by a process that ended.
    CutAfter(u64),
    /// After so many bytes the connection is reset.
    ResetAfter(u64),
    /// After so many bytes nothing passes any more, and nobody is told.
    SwallowAfter(u64),
}

/// A proxy in front of one address. Dropping it closes everything.
pub struct Proxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    passed: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy on a free port for `target`.
    ///
    /// # Errors
    /// What the system says.
    pub async fn before(target: SocketAddr, fault: Fault) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, receiver) = watch::channel(fault);
        let passed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&passed);
        let accepting = tokio::spawn(async move {
            // Dropped with the task, and the connections with it.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(
                    client,
                    target,
                    receiver.clone(),
                    Arc::clone(&counted),
                ));
            }
        });
        Ok(Self {
            address,
            fault: sender,
            passed,
            accepting,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts another fault in force, also for open connections.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Bytes that went to clients.
    pub fn passed(&self) -> u64 {
        self.passed.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(
    client: TcpStream,
    target: SocketAddr,
    fault: watch::Receiver<Fault>,
    passed: Arc<AtomicU64>,
) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy_up(from_client, to_server) => {}
        () = copy_down(from_server, to_client, fault, passed) => {}
    }
}

/// Requests pass as they are. A client that only half-closes still gets its answer.
async fn copy_up(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let copied = tokio::io::copy(&mut from, &mut to).await;
    if copied.is_ok() {
        let _ = to.shutdown().await;
        std::future::pending::<()>().await;
    }
}

async fn copy_down(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: watch::Receiver<Fault>,
    passed: Arc<AtomicU64>,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut seen = 0_u64;
    loop {
        let fault = *fault.borrow();
        let at_most = match fault {
            Fault::None => buffer.len() as u64,
            // A twentieth of a second at a time.
            Fault::Throttle(rate) => (rate / 20).clamp(1, buffer.len() as u64),
            Fault::CutAfter(limit) | Fault::ResetAfter(limit) | Fault::SwallowAfter(limit) => {
                limit.saturating_sub(seen).min(buffer.len() as u64)
            }
        };
        match (fault, at_most) {
            (Fault::CutAfter(_), 0) => return,
            (Fault::ResetAfter(_), 0) => return reset(from, to),
            (Fault::SwallowAfter(_), 0) => std::future::pending().await,
            _ => {}
        }
        let piece = &mut buffer[..at_most as usize];
        let Ok(count @ 1..) = from.read(piece).await else {
            return;
        };
        if to.write_all(&piece[..count]).await.is_err() {
            return;
        }
        seen += count as u64;
        passed.fetch_add(count as u64, SeqCst);
        if let Fault::Throttle(rate) = fault {
            tokio::time::sleep(Duration::from_secs_f64(count as f64 / rate as f64)).await;
        }
    }
}

fn reset(from: OwnedReadHalf, to: OwnedWriteHalf) {
    drop(from);
    // The two halves are of different sockets: the one to the client is what is to be reset, and a
    // linger time of zero makes the system send RST when it closes.
    let socket: &TcpStream = to.as_ref();
    let _ = socket.set_zero_linger();
    to.forget();
}
