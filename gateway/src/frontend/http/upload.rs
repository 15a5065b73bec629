//! The body of a request, of which the connection keeps hold: what a handler leaves unread has to
//! be taken off the wire, or the next request on the connection would not be seen. Must not know
//! what a body means.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::timeout;

/// Bytes that are taken off the wire for a request that was refused.
const LEFTOVER_BYTES: usize = 4 << 20;
/// How long that may take.
const LEFTOVER_TIME: Duration = Duration::from_secs(1);

/// A body that two hold: the handler, which may read it, and the connection.
pub(super) struct Upload<B>(Arc<Mutex<Inner<B>>>);

struct Inner<B> {
    body: B,
    begun: bool,
    ended: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Upload<B> {
    /// Holds `body`.
    pub(super) fn new(body: B) -> Self {
        let ended = body.is_end_stream();
        Self(Arc::new(Mutex::new(Inner {
            body,
            begun: false,
            ended,
        })))
    }

    /// The handler's hold on it.
    pub(super) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Takes what is left off the wire, within bounds. Whether nothing is left.
    ///
    /// A client that `waits` to be told to go on is not told so, for nothing.
    pub(super) async fn drain(mut self, waits: bool) -> bool {
        if self.is_end_stream() {
            return true;
        }
        if waits && !self.lock().begun {
            return false;
        }
        let ended = async {
            let mut left = LEFTOVER_BYTES;
            while let Some(Ok(frame)) = self.frame().await {
                let length = frame.data_ref().map_or(0, Buf::remaining);
                match left.checked_sub(length) {
                    Some(less) => left = less,
                    None => return false,
                }
            }
            self.is_end_stream()
        };
        timeout(LEFTOVER_TIME, ended).await.unwrap_or(false)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<B>> {
        // A body that panicked is not polled again: its connection ends.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Upload<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut inner = self.lock();
        inner.begun = true;
        let frame = Pin::new(&mut inner.body).poll_frame(cx);
        inner.ended |= matches!(frame, Poll::Ready(None)) || inner.body.is_end_stream();
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.lock().ended
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().body.size_hint()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};
    use http_body_util::{Empty, StreamBody};

    use super::*;

    fn pieces(
        count: usize,
        then_hangs: bool,
    ) -> Upload<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; 1 << 20])));
        let pieces = stream::repeat_with(piece).take(count);
        let end = if then_hangs {
            stream::pending().left_stream()
        } else {
            stream::empty().right_stream()
        };
        Upload::new(StreamBody::new(pieces.chain(end)))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_taken_within_bounds() {
        assert!(Upload::new(Empty::new()).drain(true).await);
        assert!(pieces(4, false).drain(false).await);
        assert!(!pieces(5, false).drain(false).await, "too large");
        assert!(!pieces(1, true).drain(false).await, "too slow");
        assert!(
            !pieces(1, false).drain(true).await,
            "the client was not told to send it"
        );
    }

    #[tokio::test]
    async fn what_the_handler_has_read_is_not_left() {
        let upload = pieces(2, false);
        upload.share().collect().await.unwrap();
        assert!(upload.drain(true).await);
    }
}
