//! Random 128-bit handles: how sessions and operations are named to the outside.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use subtle::ConstantTimeEq;

use crate::error::{Error, ErrorKind, Result};

/// A random 128-bit name, written as a UUID (RFC 9562, version 4).
#[derive(Clone, Copy, Eq)]
pub struct Handle([u8; 16]);

impl Handle {
    /// A new handle from the operating system's random source.
    ///
    /// # Errors
    /// `Internal`, when the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|cause| {
            Error::new(
                ErrorKind::Internal,
                format!("no random bytes from the system: {cause}"),
            )
        })?;
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Ok(Self(bytes))
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Compares in constant time: a handle is a capability.
impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for Handle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({self})")
    }
}

impl FromStr for Handle {
    type Err = Error;

    /// Reads the canonical 36-character form, in either case.
    fn from_str(text: &str) -> Result<Self> {
        let malformed = || Error::not_found("handle");
        let dashes_fit = text.len() == 36
            && text
                .bytes()
                .enumerate()
                .all(|(i, b)| (b == b'-') == matches!(i, 8 | 13 | 18 | 23));
        if !dashes_fit {
            return Err(malformed());
        }
        let mut digits = text
            .bytes()
            .filter(|b| *b != b'-')
            .map(|b| char::from(b).to_digit(16));
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            let (Some(Some(high)), Some(Some(low))) = (digits.next(), digits.next()) else {
                return Err(malformed());
            };
            *byte = u8::try_from(high << 4 | low).map_err(|_| malformed())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let handle = Handle::random().unwrap();
        assert_eq!(handle.to_string().parse::<Handle>().unwrap(), handle);
        assert_eq!(
            handle.to_string().to_uppercase().parse::<Handle>().unwrap(),
            handle
        );
        assert_ne!(Handle::random().unwrap(), handle);
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "x",
            "00000000-0000-0000-0000-00000000000g",
            "000000000000-0000-0000-00000000000000",
            "é0000000-0000-0000-0000-00000000000",
        ] {
            assert!(text.parse::<Handle>().is_err(), "{text}");
        }
    }
}
