//! Whether a connection is of use: requests that are being answered, and how long there have been
//! none. Must not know HTTP.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    running: usize,
    /// Whether there ever was a request.
    used: bool,
    since: Instant,
}

impl Activity {
    /// A connection without a request.
    pub(super) fn new() -> Arc<Self> {
        let inner = Inner {
            running: 0,
            used: false,
            since: Instant::now(),
        };
        Arc::new(Self(Mutex::new(inner)))
    }

    /// A request begins, and ends when the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        let mut inner = self.lock();
        inner.running += 1;
        inner.used = true;
        drop(inner);
        Busy(Arc::clone(self))
    }

    /// Completes when there has been no request for `idle`, or no first one for `first`.
    pub(super) async fn idle(&self, first: Duration, idle: Duration) {
        loop {
            let now = Instant::now();
            let (since, limit) = {
                let inner = self.lock();
                match (inner.running, inner.used) {
                    (0, true) => (inner.since, idle),
                    (0, false) => (inner.since, first),
                    _ => (now, idle),
                }
            };
            // A time-out too far away for the clock is none.
            let Some(end) = since.checked_add(limit) else {
                return std::future::pending().await;
            };
            if end <= now {
                return;
            }
            sleep_until(end).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Plain numbers: nothing in between can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.running -= 1;
        inner.since = Instant::now();
    }
}

/// The body of an answer, which keeps its connection busy until it is sent.
pub(super) struct BusyBody {
    pub(super) body: Body,
    pub(super) _busy: Busy,
}

impl http_body::Body for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(100);

    async fn ends_after(activity: &Activity) -> Duration {
        let begun = Instant::now();
        activity.idle(FIRST, IDLE).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_a_time_of_its_own() {
        assert_eq!(ends_after(&Activity::new()).await, FIRST);
        let activity = Activity::new();
        drop(activity.begin());
        assert_eq!(ends_after(&activity).await, IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_request_keeps_the_connection() {
        let activity = Activity::new();
        let busy = activity.begin();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE * 5).await;
            drop(busy);
        });
        let took = ends_after(&activity).await;
        assert!(took >= IDLE * 6 && took <= IDLE * 7, "{took:?}");
    }
}
