//! Threads for work that keeps a processor busy. Owns who gets a thread next; must not know what
//! the work is. Tenants are opaque numbers, served in turn, so that nobody's long queue delays
//! another's first job.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use futures::channel::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads that run jobs. Dropping it lets running jobs end and cancels the rest.
pub struct Pool {
    shared: Arc<Shared>,
    threads: usize,
}

/// The job has no answer: it panicked, or the pool is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the job ended without an answer")]
pub struct Cancelled;

struct Shared {
    queues: Mutex<Queues>,
    filled: Condvar,
}

/// Jobs by tenant. A tenant stands in `turns` once as long as it has jobs.
#[derive(Default)]
struct Queues {
    jobs: HashMap<u64, VecDeque<Job>>,
    turns: VecDeque<u64>,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads, but at least one.
    ///
    /// # Panics
    ///
    /// If the operating system gives no thread at all.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            filled: Condvar::new(),
        });
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            thread::spawn(move || work(&shared));
        }
        Self { shared, threads }
    }

    /// How many jobs run at one time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Queues `job` for `tenant`. When the future is dropped before the job begins, the job is not run.
    pub fn run<T: Send + 'static>(
        &self,
        tenant: u64,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Cancelled>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        self.shared.push(
            tenant,
            Box::new(move || {
                if answer.is_canceled() {
                    return;
                }
                // Whatever the job has broken belongs to it alone, and its future says so.
                if let Ok(value) = catch_unwind(AssertUnwindSafe(job)) {
                    // Nobody may be waiting any more.
                    let _ = answer.send(value);
                }
            }),
        );
        async move { answered.await.map_err(|_| Cancelled) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // What waits is dropped after the lock is released: a job may own anything.
        let _waiting = self.shared.queues().close();
        self.shared.filled.notify_all();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

fn work(shared: &Shared) {
    while let Some(job) = shared.next() {
        job();
    }
}

impl Shared {
    fn push(&self, tenant: u64, job: Job) {
        self.queues().push(tenant, job);
        self.filled.notify_one();
    }

    /// The next job in turn; none when the pool is closed.
    fn next(&self) -> Option<Job> {
        let mut queues = self.queues();
        loop {
            if queues.closed {
                return None;
            }
            if let Some(job) = queues.pop() {
                return Some(job);
            }
            queues = self
                .filled
                .wait(queues)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // No job runs under the lock, so a poisoned one is as good as another.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn push(&mut self, tenant: u64, job: Job) {
        let jobs = self.jobs.entry(tenant).or_default();
        if jobs.is_empty() {
            self.turns.push_back(tenant);
        }
        jobs.push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        let tenant = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&tenant)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        job
    }

    fn close(&mut self) -> HashMap<u64, VecDeque<Job>> {
        self.closed = true;
        self.turns.clear();
        std::mem::take(&mut self.jobs)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use futures::executor::block_on;
    use futures::future::join_all;

    use super::*;

    /// A pool of one thread that is busy until the returned sender is dropped.
    fn busy() -> (Pool, mpsc::Sender<()>) {
        let pool = Pool::new(1);
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let running = pool.run(0, move || {
            begun.send(()).unwrap();
            let _ = released.recv();
        });
        has_begun.recv().unwrap();
        // A job that runs goes on although nobody waits for it.
        drop(running);
        (pool, release)
    }

    #[test]
    fn tenants_are_served_in_turn_and_each_in_order() {
        let (pool, release) = busy();
        let order = Arc::new(Mutex::new(Vec::new()));
        let jobs: Vec<_> = [(1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (3, 'e'), (2, 'f')]
            .into_iter()
            .map(|(tenant, name)| {
                let order = Arc::clone(&order);
                pool.run(tenant, move || order.lock().unwrap().push(name))
            })
            .collect();
        drop(release);
        assert!(block_on(join_all(jobs)).iter().all(Result::is_ok));
        assert_eq!(*order.lock().unwrap(), ['a', 'd', 'e', 'b', 'f', 'c']);
    }

    #[test]
    fn a_panic_is_an_error_and_the_thread_lives_on() {
        let pool = Pool::new(1);
        assert_eq!(
            block_on(pool.run(1, || panic!("on purpose"))),
            Err::<(), _>(Cancelled)
        );
        assert_eq!(block_on(pool.run(1, || 7)), Ok(7));
    }

    #[test]
    fn a_job_whose_future_is_gone_is_skipped() {
        let (pool, release) = busy();
        let ran = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ran);
        drop(pool.run(1, move || seen.store(true, Ordering::SeqCst)));
        drop(release);
        block_on(pool.run(1, || ())).unwrap();
        assert!(!ran.load(Ordering::SeqCst));
    }

    #[test]
    fn jobs_that_wait_end_with_the_pool() {
        let (pool, release) = busy();
        let waiting = pool.run(1, || ());
        drop(pool);
        assert_eq!(block_on(waiting), Err(Cancelled));
        drop(release);
    }
}
