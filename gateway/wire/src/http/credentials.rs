//! The `Authorization` header: HTTP Basic (RFC 7617) and bearer tokens (RFC 6750). Bounds what it
//! reads. Must not know who is who.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Bytes of a user's name, at most.
pub const MAX_USER: usize = 256;
/// Bytes of a password, at most.
pub const MAX_PASSWORD: usize = 1024;
/// Bytes of a bearer token, at most.
pub const MAX_TOKEN: usize = 1024;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a header offers as proof. `Debug` shows no secret.
#[derive(Clone, Eq, PartialEq)]
pub enum Authorization {
    /// A user's name and password.
    Basic {
        /// The name as it was sent.
        user: String,
        /// The secret as it was sent.
        password: String,
    },
    /// A session's token.
    Bearer(String),
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { user, .. } => write!(f, "Basic {{ user: {user:?}, password: *** }}"),
            Self::Bearer(_) => f.write_str("Bearer(***)"),
        }
    }
}

/// Why a header is no proof. Says nothing of its value, which may hold a secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Malformed {
    /// Neither Basic nor Bearer.
    #[error("the Authorization header must begin with Basic or Bearer")]
    Scheme,
    /// Not base64 of `name:password` in UTF-8.
    #[error("the Basic credentials are not base64 of name:password in UTF-8")]
    Basic,
    /// Not the characters of a token.
    #[error("the bearer token holds characters that no token has")]
    Bearer,
    /// Longer than anything that is true.
    #[error("the credentials are too long")]
    TooLong,
}

impl Authorization {
    /// Reads the value of an `Authorization` header.
    ///
    /// # Errors
    /// What is wrong with its form.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let value = value.trim_ascii();
        let end = value
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(value.len());
        let (scheme, rest) = value.split_at(end);
        let rest = rest.trim_ascii_start();
        if scheme.eq_ignore_ascii_case(b"basic") {
            basic(rest)
        } else if scheme.eq_ignore_ascii_case(b"bearer") {
            bearer(rest)
        } else {
            Err(Malformed::Scheme)
        }
    }
}

fn basic(encoded: &[u8]) -> Result<Authorization, Malformed> {
    if encoded.len() > (MAX_USER + 1 + MAX_PASSWORD).div_ceil(3) * 4 {
        return Err(Malformed::TooLong);
    }
    let decoded = BASE64.decode(encoded).map_err(|_| Malformed::Basic)?;
    let text = String::from_utf8(decoded).map_err(|_| Malformed::Basic)?;
    let (user, password) = text.split_once(':').ok_or(Malformed::Basic)?;
    if text.chars().any(char::is_control) {
        return Err(Malformed::Basic);
    }
    if user.len() > MAX_USER || password.len() > MAX_PASSWORD {
        return Err(Malformed::TooLong);
    }
    Ok(Authorization::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    })
}

fn bearer(token: &[u8]) -> Result<Authorization, Malformed> {
    if token.len() > MAX_TOKEN {
        return Err(Malformed::TooLong);
    }
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(b);
    if token.is_empty() || !token.iter().all(is_token) {
        return Err(Malformed::Bearer);
    }
    Ok(Authorization::Bearer(
        String::from_utf8_lossy(token).into_owned(),
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn basic_of(text: &str) -> Vec<u8> {
        format!("Basic {}", BASE64.encode(text)).into_bytes()
    }

    #[test]
    fn names_and_passwords_are_read() {
        let read = |text| Authorization::parse(&basic_of(text)).unwrap();
        let pair = |user: &str, password: &str| Authorization::Basic {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        assert_eq!(read("ada:p:w"), pair("ada", "p:w"));
        assert_eq!(read(":"), pair("", ""));
        assert_eq!(read("jürgen:пароль"), pair("jürgen", "пароль"));
        assert_eq!(
            Authorization::parse(b"bAsIc   YTpi ").unwrap(),
            pair("a", "b")
        );
        assert_eq!(
            Authorization::parse(b"Basic YTo").unwrap(),
            pair("a", ""),
            "without padding"
        );
    }

    #[test]
    fn tokens_are_read() {
        let token = Authorization::Bearer("a-b.c_d~e+f/g=".to_owned());
        assert_eq!(
            Authorization::parse(b"Bearer a-b.c_d~e+f/g=").unwrap(),
            token
        );
        assert_eq!(Authorization::parse(b"Bearer a b"), Err(Malformed::Bearer));
        assert_eq!(Authorization::parse(b"Bearer"), Err(Malformed::Bearer));
    }

    #[test]
    fn the_rest_is_refused_within_bounds() {
        assert_eq!(Authorization::parse(b""), Err(Malformed::Scheme));
        assert_eq!(
            Authorization::parse(b"Negotiate abc"),
            Err(Malformed::Scheme)
        );
        assert_eq!(Authorization::parse(b"Basic"), Err(Malformed::Basic));
        assert_eq!(Authorization::parse(b"Basic %%%"), Err(Malformed::Basic));
        assert_eq!(
            Authorization::parse(&basic_of("no colon")),
            Err(Malformed::Basic)
        );
        assert_eq!(
            Authorization::parse(&basic_of("a:b\r\nc")),
            Err(Malformed::Basic)
        );
        assert_eq!(
            Authorization::parse(b"Basic /////w=="),
            Err(Malformed::Basic),
            "not UTF-8"
        );
        let long = format!("{}:x", "u".repeat(MAX_USER + 1));
        assert_eq!(
            Authorization::parse(&basic_of(&long)),
            Err(Malformed::TooLong)
        );
        let long = format!("Basic {}", "A".repeat(1 << 20));
        assert_eq!(
            Authorization::parse(long.as_bytes()),
            Err(Malformed::TooLong)
        );
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!(
            "{:?}",
            Authorization::parse(&basic_of("ada:secret")).unwrap()
        );
        assert!(shown.contains("ada") && !shown.contains("secret"));
        assert!(!format!("{:?}", Authorization::Bearer("secret".to_owned())).contains("secret"));
    }
}
