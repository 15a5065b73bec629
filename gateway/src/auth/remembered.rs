//! Log-ins that were right a short while ago, under a keyed hash. Must not hold a password, nor
//! anything from which one can be guessed without the key.

use std::collections::HashMap;
use std::time::Duration;

use ring::hmac;
use tokio::time::Instant;

/// Log-ins that are remembered at most.
const ENTRIES: usize = 10_000;

/// What a right log-in leaves behind: HMAC-SHA-256 under a key that lives as long as the process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Proof([u8; 32]);

/// The log-ins that were right.
pub(super) struct Remembered {
    key: hmac::Key,
    keep: Duration,
    until: HashMap<Proof, Instant>,
}

impl Remembered {
    /// Nothing yet.
    pub(super) fn new(keep: Duration) -> Result<Self, String> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            keep,
            until: HashMap::new(),
        })
    }

    /// The proof of a log-in against the hash on file: with another hash it is another proof.
    pub(super) fn proof(&self, user: &str, password: &str, hash: &str) -> Proof {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [user, password, hash] {
            // With its length, so that no two log-ins are the same bytes.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        Proof(proof)
    }

    /// Whether the log-in was right a short while ago.
    pub(super) fn holds(&self, proof: &Proof) -> bool {
        self.until
            .get(proof)
            .is_some_and(|until| Instant::now() < *until)
    }

    /// Remembers a log-in.
    pub(super) fn add(&mut self, proof: Proof) {
        let now = Instant::now();
        if self.until.len() >= ENTRIES {
            self.until.retain(|_, until| now < *until);
        }
        if self.until.len() < ENTRIES {
            self.until.insert(proof, now + self.keep);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_forgotten_in_time() {
        let mut remembered = Remembered::new(Duration::from_secs(300)).unwrap();
        let proof = remembered.proof("ann", "pw", "$hash");
        assert!(!remembered.holds(&proof));
        remembered.add(proof);
        tokio::time::advance(Duration::from_secs(299)).await;
        assert!(remembered.holds(&proof));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!remembered.holds(&proof));
    }

    #[tokio::test]
    async fn user_password_and_hash_make_the_proof() {
        let remembered = Remembered::new(Duration::from_secs(300)).unwrap();
        let proof = remembered.proof("ann", "pw", "$hash");
        assert_ne!(proof, remembered.proof("annp", "w", "$hash"));
        assert_ne!(proof, remembered.proof("ann", "pw", "$other"));
        assert_ne!(
            proof,
            Remembered::new(Duration::ZERO)
                .unwrap()
                .proof("ann", "pw", "$hash")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn its_size_is_bounded() {
        let mut remembered = Remembered::new(Duration::from_secs(300)).unwrap();
        for index in 0..=ENTRIES {
            remembered.add(remembered.proof("ann", &index.to_string(), "$hash"));
        }
        assert_eq!(remembered.until.len(), ENTRIES);
        tokio::time::advance(Duration::from_secs(300)).await;
        remembered.add(remembered.proof("ann", "pw", "$hash"));
        assert_eq!(remembered.until.len(), 1);
    }
}
