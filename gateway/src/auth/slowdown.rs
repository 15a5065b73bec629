//! Slowing down who fails to log in: per user at an address, and per address. Must not know what
//! a log-in is.
//!
//! A user alone is never slowed: that would let anybody lock anybody out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use tokio::time::Instant;

/// Failures without consequence: a person mistypes; behind one address there may be many.
const FREE_FOR_USER: u32 = 5;
const FREE_FOR_ADDRESS: u32 = 50;

/// The first wait, which doubles with each failure, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Failures older than this are forgotten.
const MEMORY: Duration = Duration::from_secs(15 * 60);

/// Entries at most. When full, the oldest makes room.
const ENTRIES: usize = 10_000;

/// Who failed how often.
#[derive(Debug, Default)]
pub(super) struct Slowdown {
    failures: HashMap<Key, Failures>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Key {
    Address(IpAddr),
    User(String, IpAddr),
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Slowdown {
    /// How long `user` at `peer` has to wait before the next attempt is looked at.
    pub(super) fn wait(&self, user: &str, peer: IpAddr) -> Duration {
        let of_user = self.wait_of(&Key::user(user, peer), FREE_FOR_USER);
        of_user.max(self.wait_of(&Key::address(peer), FREE_FOR_ADDRESS))
    }

    /// Notes a failure.
    pub(super) fn failed(&mut self, user: &str, peer: IpAddr) {
        let now = Instant::now();
        for key in [Key::user(user, peer), Key::address(peer)] {
            self.make_room(now);
            let failures = self.failures.entry(key).or_insert(Failures {
                count: 0,
                last: now,
            });
            if now.duration_since(failures.last) > MEMORY {
                failures.count = 0;
            }
            failures.count = failures.count.saturating_add(1);
            failures.last = now;
        }
    }

    /// Notes a success, which proves that the user at that address is no guesser.
    pub(super) fn succeeded(&mut self, user: &str, peer: IpAddr) {
        self.failures.remove(&Key::user(user, peer));
    }

    fn wait_of(&self, key: &Key, free: u32) -> Duration {
        let Some(failures) = self.failures.get(key) else {
            return Duration::ZERO;
        };
        let doublings = failures.count.saturating_sub(free);
        if doublings == 0 || failures.last.elapsed() > MEMORY {
            return Duration::ZERO;
        }
        let wait = FIRST_WAIT
            .saturating_mul(1 << (doublings - 1).min(16))
            .min(LONGEST_WAIT);
        wait.saturating_sub(failures.last.elapsed())
    }

    fn make_room(&mut self, now: Instant) {
        if self.failures.len() < ENTRIES {
            return;
        }
        self.failures
            .retain(|_, failures| now.duration_since(failures.last) <= MEMORY);
        if self.failures.len() >= ENTRIES {
            let oldest = self
                .failures
                .iter()
                .min_by_key(|(_, failures)| failures.last)
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.failures.remove(&oldest);
            }
        }
    }
}

impl Key {
    fn address(peer: IpAddr) -> Self {
        Self::Address(network(peer))
    }

    fn user(user: &str, peer: IpAddr) -> Self {
        Self::User(user.to_owned(), network(peer))
    }
}

/// One customer has a whole /64 of IPv6 addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_a_minute_and_are_forgotten() {
        let mut slowdown = Slowdown::default();
        let here = address("192.0.2.1");
        let mut waits = Vec::new();
        for _ in 0..14 {
            slowdown.failed("ann", here);
            waits.push(slowdown.wait("ann", here).as_secs());
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(slowdown.wait("ann", here).as_secs(), 1);
        tokio::time::advance(MEMORY).await;
        assert!(slowdown.wait("ann", here).is_zero());
        slowdown.failed("ann", here);
        assert!(
            slowdown.wait("ann", here).is_zero(),
            "old failures do not count"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn others_are_not_slowed_and_a_success_ends_it() {
        let mut slowdown = Slowdown::default();
        let here = address("192.0.2.1");
        for _ in 0..10 {
            slowdown.failed("ann", here);
        }
        assert!(!slowdown.wait("ann", here).is_zero());
        assert!(slowdown.wait("bob", here).is_zero());
        assert!(slowdown.wait("ann", address("192.0.2.2")).is_zero());
        slowdown.succeeded("ann", here);
        assert!(slowdown.wait("ann", here).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_tries_many_users_is_slowed() {
        let mut slowdown = Slowdown::default();
        for index in 0..60 {
            slowdown.failed(&index.to_string(), address("2001:db8::1"));
        }
        assert!(
            !slowdown.wait("new", address("2001:db8::ffff")).is_zero(),
            "the same network"
        );
        assert!(slowdown.wait("new", address("2001:db8:0:1::1")).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn its_size_is_bounded() {
        let mut slowdown = Slowdown::default();
        let addresses = u32::try_from(ENTRIES).unwrap();
        for index in 0..addresses {
            slowdown.failed("ann", IpAddr::from(index.to_be_bytes()));
            assert!(slowdown.failures.len() <= ENTRIES);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let last = IpAddr::from((addresses - 1).to_be_bytes());
        assert!(
            slowdown.failures.contains_key(&Key::address(last)),
            "the oldest made room"
        );
    }
}
