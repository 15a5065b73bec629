//! Stopping, in three phases: stop accepting, let run, cancel. Owns the two signals and the count
//! of what still runs. Must not know what runs, nor how long it may.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What everything that runs holds, to learn that it should come to an end.
///
/// `stopping` means: take nothing new, end what runs at its next natural end. `cancelled` means:
/// end now. The second always implies the first.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    stopping: CancellationToken,
    cancelled: CancellationToken,
    tasks: TaskTracker,
}

impl Drain {
    /// A drain on which nothing runs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes once nothing new may begin.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Completes once everything has to end.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Whether nothing new may begin.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Whether everything has to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Runs `task` on the runtime; [`finished`](Self::finished) waits for it.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Begins the first phase.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    /// Begins the last phase.
    pub fn cancel(&self) {
        self.stop();
        self.cancelled.cancel();
    }

    /// Completes when the drain is stopping and every spawned task has ended.
    pub async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// Whether all tasks ended within `at_most`.
    pub async fn finished_within(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.finished()).await.is_ok()
    }

    /// Tasks that have not ended.
    pub fn running(&self) -> usize {
        self.tasks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_may_end_by_itself_until_it_is_cancelled() {
        let drain = Drain::new();
        let seen = drain.clone();
        drain.spawn(async move {
            seen.stopping().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        });
        let stubborn = drain.clone();
        drain.spawn(async move { stubborn.cancelled().await });

        assert!(!drain.is_stopping());
        drain.stop();
        assert!(drain.is_stopping() && !drain.is_cancelled());
        assert!(!drain.finished_within(Duration::from_secs(30)).await);
        assert_eq!(
            drain.running(),
            1,
            "the first ended by itself, the second never does"
        );
        drain.cancel();
        assert!(drain.finished_within(Duration::from_secs(1)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_drain_is_never_finished() {
        let drain = Drain::new();
        assert!(!drain.finished_within(Duration::from_secs(1)).await);
        drain.stop();
        assert!(drain.finished_within(Duration::from_secs(1)).await);
    }
}
