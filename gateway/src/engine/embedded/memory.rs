//! Memory of statements and session tables: a limit for each, and one for all of them.
//!
//! Owns the pools. Must not know plans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// What all statements and session tables of one engine hold together.
#[derive(Debug)]
pub(super) struct Total {
    limit: usize,
    used: AtomicUsize,
}

impl Total {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
        })
    }

    /// Bytes held now.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn try_add(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }
}

/// The pool of one statement, or of one session's tables. Within it, operators that can spill
/// share fairly; against the others only the sum counts, and it is never exceeded by choice.
pub(super) struct Pool {
    fair: FairSpillPool,
    total: Arc<Total>,
}

impl Pool {
    pub(super) fn shared(limit: usize, total: &Arc<Total>) -> Arc<dyn MemoryPool> {
        let fair = FairSpillPool::new(limit.min(total.limit));
        Arc::new(Self {
            fair,
            total: Arc::clone(total),
        })
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.fair.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.fair.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.fair.grow(reservation, additional);
        self.total.add(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.fair.shrink(reservation, shrink);
        self.total.subtract(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.fair.try_grow(reservation, additional)?;
        if self.total.try_add(additional) {
            return Ok(());
        }
        self.fair.shrink(reservation, additional);
        Err(DataFusionError::ResourcesExhausted(format!(
            "{} asked for {additional} more bytes, while {} of {} bytes for all statements are taken",
            reservation.consumer().name(),
            self.total.used(),
            self.total.limit,
        )))
    }

    fn reserved(&self) -> usize {
        self.fair.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.fair.memory_limit()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("reserved", &self.reserved())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fair.fmt(f)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_has_its_limit_and_all_have_theirs() {
        let total = Total::new(100);
        let (a, b) = (Pool::shared(80, &total), Pool::shared(80, &total));
        let first = MemoryConsumer::new("first").register(&a);
        let second = MemoryConsumer::new("second").register(&b);
        assert!(first.try_grow(81).is_err());
        first.try_grow(60).unwrap();
        assert!(second.try_grow(50).is_err());
        second.try_grow(40).unwrap();
        assert_eq!((total.used(), a.reserved(), b.reserved()), (100, 60, 40));
        drop(first);
        second.try_grow(40).unwrap();
        drop(second);
        assert_eq!(total.used(), 0);
    }
}
