//! Which names stand for secrets, and what is shown instead. Must not know where it is shown.

use std::borrow::Cow;

/// Pieces of a name that mark its value as a secret, letters and digits alone.
const MARKS: [&str; 9] = [
    "accesskey",
    "apikey",
    "authorization",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
];

/// Whether `name` looks like that of a secret: `fs.s3a.secret.key`, `Password`, `api_key`.
pub fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    // A tokenizer is no token.
    let is_token = letters.contains("token") && !letters.contains("tokeniz");
    is_token || MARKS.iter().any(|mark| letters.contains(mark))
}

/// The value of `name` as it may be shown.
pub fn mask<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match is_secret(name) && !value.is_empty() {
        true => Cow::Borrowed("***"),
        false => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "fs.s3a.secret.key",
            "PASSWORD",
            "x.api-key",
            "aws_access_key_id",
            "auth.token",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "arrow.compression.codec",
            "tokenizer.name",
            "key",
            "pass",
            "",
        ] {
            assert!(!is_secret(name), "{name}");
        }
        assert_eq!(mask("a.token", "x"), "***");
        assert_eq!(mask("a.b", "x"), "x");
    }
}
