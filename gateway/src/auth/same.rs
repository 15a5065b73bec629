//! The same log-in many times at once, as when a program opens its connections: one goes ahead,
//! the others wait for what it finds. Must not know what is found.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

/// Who goes ahead, by what they ask.
#[derive(Debug)]
pub(super) struct Same<K: Eq + Hash + Copy> {
    gates: Mutex<HashMap<K, Arc<Gate<()>>>>,
}

/// The right to go ahead; passed on when dropped.
pub(super) struct Ahead<'a, K: Eq + Hash + Copy> {
    // Fields drop in this order: whoever takes away the gate must be through it.
    _guard: OwnedMutexGuard<()>,
    _present: Present<'a, K>,
}

/// Somebody at a gate, ahead or waiting. The last one who leaves takes the gate away.
struct Present<'a, K: Eq + Hash + Copy> {
    same: &'a Same<K>,
    key: K,
    gate: Option<Arc<Gate<()>>>,
}

impl<K: Eq + Hash + Copy> Default for Same<K> {
    fn default() -> Self {
        Self {
            gates: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash + Copy> Same<K> {
    /// Waits until nobody else is ahead with `key`.
    pub(super) async fn go_ahead(&self, key: K) -> Ahead<'_, K> {
        let gate = Arc::clone(self.lock().entry(key).or_default());
        let present = Present {
            same: self,
            key,
            gate: Some(Arc::clone(&gate)),
        };
        Ahead {
            _guard: gate.lock_owned().await,
            _present: present,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Gate<()>>>> {
        // Single map calls: a panic elsewhere leaves the table whole.
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Copy> Drop for Present<'_, K> {
    fn drop(&mut self) {
        let mut gates = self.same.lock();
        // Given back under the lock, so that of two who leave at once one sees that it is last.
        self.gate = None;
        if gates
            .get(&self.key)
            .is_some_and(|gate| Arc::strong_count(gate) == 1)
        {
            gates.remove(&self.key);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_goes_ahead_and_nothing_stays_behind() {
        let same = Same::default();
        let first = same.go_ahead(1).await;
        let second = same.go_ahead(2).await;
        let mut third = Box::pin(same.go_ahead(1));
        assert!(
            third.as_mut().now_or_never().is_none(),
            "the first is ahead"
        );
        let gone = Box::pin(same.go_ahead(2)).now_or_never();
        assert!(gone.is_none(), "one that waits may leave");
        assert_eq!(same.lock().len(), 2);
        drop((first, second));
        drop(third.await);
        assert!(same.lock().is_empty());
    }
}
