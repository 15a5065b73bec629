//! Places under a limit, in all and per user. A place lives in the value that it limits, so it
//! cannot leak or be given back twice. Must not know what is limited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// A limit with its present use.
#[derive(Debug)]
pub(crate) struct Quota {
    /// What is limited, in the plural.
    what: &'static str,
    /// The settings that bound it, for the message.
    in_all: usize,
    per_user: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    in_all: usize,
    by_user: HashMap<Arc<str>, usize>,
}

impl Quota {
    pub(crate) fn new(what: &'static str, in_all: usize, per_user: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            in_all,
            per_user,
            used: Mutex::default(),
        })
    }

    /// A place for `user`, at once or not at all.
    ///
    /// # Errors
    /// `Overloaded`, naming the limit that is reached.
    pub(crate) fn enter(self: &Arc<Self>, user: &str) -> Result<Place> {
        let mut used = self.lock();
        if used.in_all >= self.in_all {
            return Err(self.full(&format!("limits.{}", self.what), self.in_all));
        }
        let user: Arc<str> = Arc::from(user);
        let by_user = used.by_user.entry(Arc::clone(&user)).or_default();
        if *by_user >= self.per_user {
            return Err(self.full(&format!("limits.{}_per_user", self.what), self.per_user));
        }
        *by_user += 1;
        used.in_all += 1;
        Ok(Place {
            quota: Arc::clone(self),
            user,
        })
    }

    /// Places in use.
    pub(crate) fn in_use(&self) -> usize {
        self.lock().in_all
    }

    fn full(&self, setting: &str, limit: usize) -> Error {
        Error::new(
            ErrorKind::Overloaded,
            format!(
                "too many {}: {setting} is {limit}; try again later",
                self.what
            ),
        )
        .with_sqlstate("53300")
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        // The counts are changed together, without a call that can panic in between.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place under a [`Quota`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    quota: Arc<Quota>,
    user: Arc<str>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.quota.lock();
        used.in_all -= 1;
        if let Some(by_user) = used.by_user.get_mut(&self.user) {
            *by_user -= 1;
            if *by_user == 0 {
                used.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_limits_name_themselves() {
        let quota = Quota::new("sessions", 3, 2);
        let first = quota.enter("ann").unwrap();
        let _second = quota.enter("ann").unwrap();
        assert!(
            quota
                .enter("ann")
                .unwrap_err()
                .message()
                .contains("sessions_per_user")
        );
        let _third = quota.enter("bob").unwrap();
        assert!(
            quota
                .enter("bob")
                .unwrap_err()
                .message()
                .contains("limits.sessions is 3")
        );
        drop(first);
        assert_eq!(quota.in_use(), 2);
        quota.enter("ann").unwrap();
        assert_eq!(quota.in_use(), 2);
    }
}
