//! A statement's text as it may be kept and shown: without what looks like a secret, and not
//! longer than a log line bears. When in doubt, too much is hidden.
//!
//! Must not know whether the text parses: it often does not.

use std::borrow::Cow;

use super::lexer::{Kind, Token, tokens};
use crate::settings::is_secret;

/// Longest text that is kept, in bytes.
const MAX_TEXT: usize = 4 << 10;

/// Longest name that is looked at, in bytes.
const MAX_NAME: usize = 512;

/// Words that may stand between a name and its value.
const CONNECTIONS: [&str; 7] = ["BY", "AS", "IS", "TO", "IN", "LIKE", "VALUE"];

const HIDDEN: &str = "'***'";

/// `text` for logs and status pages. Hidden are: the value in `SET` of a key that sounds like a
/// secret, the string after such a word (`PASSWORD '…'`, `'fs.secret.key' '…'`, `token = '…'`),
/// strings that carry credentials in themselves, and comments that speak of them.
pub fn redact(text: &str) -> String {
    let mut kept = String::with_capacity(text.len().min(MAX_TEXT) + 8);
    let mut watch = Watch::default();
    for token in tokens(text) {
        // What is beyond is not shown, so it need not be looked at.
        let seen = &token.text[..token.text.floor_char_boundary(2 * MAX_TEXT)];
        let token = Token {
            text: seen,
            ..token
        };
        match watch.see(&token) {
            Sight::Clear => kept.push_str(token.text),
            Sight::Hide => kept.push_str(&hidden(&token)),
            Sight::HideRest => {
                kept.push_str(HIDDEN);
                break;
            }
        }
        if kept.len() > MAX_TEXT {
            break;
        }
    }
    shorten(kept)
}

/// What may be shown of a token.
enum Sight {
    Clear,
    Hide,
    /// From here on nothing is certain.
    HideRest,
}

/// What was seen so far of one statement.
#[derive(Default)]
struct Watch {
    /// Tokens of code so far.
    seen: usize,
    /// The statement sets one value and does nothing else.
    is_set: bool,
    /// The `=` or `TO` of a `SET` was seen.
    is_value: bool,
    /// The name that was said last, with its dots; in `SET`, all that stands before the value.
    name: String,
    /// What the next string is the value of sounds like a secret.
    is_announced: bool,
}

impl Watch {
    fn see(&mut self, token: &Token<'_>) -> Sight {
        match token.kind {
            Kind::Blank => return Sight::Clear,
            Kind::Comment if is_secret(token.text) => return Sight::Hide,
            Kind::Comment => return Sight::Clear,
            _ => {}
        }
        self.seen += 1;
        if self.seen == 1 && token.is_word("SET") {
            self.is_set = true;
            return Sight::Clear;
        }
        if self.is_set && !self.is_value {
            self.see_key(token);
        } else if self.is_set && is_secret(&self.name) {
            return Sight::HideRest;
        }
        match token.kind {
            Kind::Sign(';') => {
                *self = Self::default();
                Sight::Clear
            }
            Kind::Text | Kind::OtherText | Kind::DoubleQuoted => self.see_string(token),
            _ => {
                self.announce(token);
                Sight::Clear
            }
        }
    }

    fn see_key(&mut self, token: &Token<'_>) {
        self.is_value = token.is_sign('=') || (self.seen > 2 && token.is_word("TO"));
        if !self.is_value {
            self.say(token.text, true);
        }
    }

    fn see_string(&mut self, token: &Token<'_>) -> Sight {
        let was_announced = std::mem::replace(&mut self.is_announced, is_secret(token.text));
        if !was_announced && !carries_credentials(token.text) {
            return Sight::Clear;
        }
        // Some dialects read `\'` as a quote inside the string, so this may not be its end.
        match token.text.contains('\\') {
            true => Sight::HideRest,
            false => Sight::Hide,
        }
    }

    fn announce(&mut self, token: &Token<'_>) {
        let is_connection = match token.kind {
            Kind::Sign(sign) => matches!(sign, '=' | '>' | ':' | '(' | ','),
            Kind::Word => CONNECTIONS.iter().any(|word| token.is_word(word)),
            _ => false,
        };
        if is_connection || (self.is_set && !self.is_value) {
            return;
        }
        let goes_on = token.is_sign('.') || self.name.ends_with('.');
        self.say(token.text, goes_on);
        self.is_announced = is_secret(&self.name) || token.is_word("IDENTIFIED");
    }

    fn say(&mut self, text: &str, goes_on: bool) {
        if !goes_on {
            self.name.clear();
        }
        if self.name.len() < MAX_NAME {
            self.name
                .push_str(&text[..text.floor_char_boundary(MAX_NAME)]);
        }
    }
}

/// A string such as `postgres://user:pass@host` or `…?password=x`.
fn carries_credentials(text: &str) -> bool {
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let mut settings = text.split(['?', '&', ';', ',', ' ', '\n']);
    authority.contains('@')
        || settings.any(|setting| {
            let name = setting.split_once(['=', ':']).map(|(name, _)| name);
            name.is_some_and(|name| is_secret(name) || is_signature(name))
        })
}

/// Names under which signed URLs carry what opens them.
fn is_signature(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig" || name.ends_with("signature") || name == "pwd"
}

fn hidden(token: &Token<'_>) -> Cow<'static, str> {
    match token.kind {
        Kind::Comment => Cow::Borrowed("/* *** */"),
        _ => Cow::Borrowed(HIDDEN),
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let sign = '…';
        text.truncate(text.floor_char_boundary(MAX_TEXT - sign.len_utf8()));
        text.push(sign);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_hidden_and_what_is_not() {
        for (text, want) in [
            ("SELECT 1", "SELECT 1"),
            ("SET a.b = 'x'", "SET a.b = 'x'"),
            (
                "SET fs.s3a.secret.key = 'x y'",
                "SET fs.s3a.secret.key = '***'",
            ),
            ("set `my.Password`=it's; more", "set `my.Password`='***'"),
            ("SET auth.token TO abc -- c", "SET auth.token TO '***'"),
            ("SET x=1; SET a.token=2", "SET x=1; SET a.token='***'"),
            ("SET `a`.`access`.key = 2", "SET `a`.`access`.key = '***'"),
            (
                "OPTIONS (s3.access.key 'x')",
                "OPTIONS (s3.access.key '***')",
            ),
            ("CREATE USER a PASSWORD 'x'", "CREATE USER a PASSWORD '***'"),
            (
                "CREATE USER a IDENTIFIED BY 'x'",
                "CREATE USER a IDENTIFIED BY '***'",
            ),
            (
                "ALTER USER a SET PASSWORD = E'x'",
                "ALTER USER a SET PASSWORD = '***'",
            ),
            (
                "OPTIONS('aws.secret_access_key' 'x', 'aws.region' 'eu')",
                "OPTIONS('aws.secret_access_key' '***', 'aws.region' 'eu')",
            ),
            ("f(token => 'x', a => 'y')", "f(token => '***', a => 'y')"),
            ("WHERE password IN ('x')", "WHERE password IN ('***')"),
            (
                "SELECT token FROM t WHERE a = 'y'",
                "SELECT token FROM t WHERE a = 'y'",
            ),
            ("LOCATION 'pg://u:p@h/d'", "LOCATION '***'"),
            ("LOCATION 'pg://h/d@2'", "LOCATION 'pg://h/d@2'"),
            ("'https://h/x?a=1&X-Amz-Signature=f'", "'***'"),
            ("'jdbc:x;password=y'", "'***'"),
            (r"PASSWORD 'it\'s me' x", "PASSWORD '***'"),
            ("SELECT 1 -- password: x", "SELECT 1 /* *** */"),
            ("PASSWORD $$x$$", "PASSWORD '***'"),
            ("PASSWORD 'x", "PASSWORD '***'"),
        ] {
            assert_eq!(redact(text), want, "{text:?}");
        }
    }

    #[test]
    fn it_is_short() {
        let long = format!("SELECT '{}'", "é".repeat(1 << 20));
        let short = redact(&long);
        assert!(short.len() <= MAX_TEXT && short.ends_with('…') && short.starts_with("SELECT 'é"));
    }

    proptest! {
        #[test]
        fn it_never_panics_and_is_short(text in "(\\PC|['\"`$;/*\\-\\\\\n =]|SET|token)*") {
            prop_assert!(redact(&text).len() <= MAX_TEXT);
        }
    }
}
