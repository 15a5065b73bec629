//! The proof that a reader got every byte that was written: a chained xxh3-64. It finds accidents,
//! not attackers. Must not know framing.

use xxhash_rust::xxh3::Xxh3;

/// The chained hash over the messages of one result.
///
/// h(0) is 0, and h(i) is the xxh3-64 of header i followed by body i, seeded with h(i-1). A header
/// is taken with its padding, framing and end marker are left out. The schema is message 1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Digest(u64);

impl Digest {
    /// The hash of no message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next message.
    pub fn update(&mut self, header: &[u8], body: &[u8]) {
        let mut hasher = Xxh3::with_seed(self.0);
        hasher.update(header);
        hasher.update(body);
        self.0 = hasher.digest();
    }

    /// The hash of all messages so far.
    pub fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    #[test]
    fn each_message_is_seeded_with_the_hash_before_it() {
        let mut digest = Digest::new();
        assert_eq!(digest.value(), 0);
        digest.update(b"schema..", b"");
        let first = xxh3_64_with_seed(b"schema..", 0);
        assert_eq!(digest.value(), first);
        let body = vec![7; 5000];
        digest.update(b"batch", &body);
        let whole = [b"batch".as_slice(), &body].concat();
        assert_eq!(digest.value(), xxh3_64_with_seed(&whole, first));
    }
}
