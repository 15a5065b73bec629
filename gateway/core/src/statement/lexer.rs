//! Cuts a text into the pieces that matter for finding its end and its first words: strings,
//! quoted names, comments, words, single signs. The one lexer for parsing, limits and redaction.
//!
//! It never fails and loses no byte: the pieces laid end to end are the text, and a quote or
//! comment that is not closed reaches to the end and says so. Must not know any statement.

/// What a piece of text is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// White space, in Unicode's sense, with byte order marks and zero-width spaces.
    Blank,
    /// `-- …` to the end of the line, or `/* … */`, nested.
    Comment,
    /// `'…'` where `''` is a quote.
    Text,
    /// `E'…'` where a backslash escapes, or `$tag$…$tag$`.
    OtherText,
    /// `"…"` where `""` is a quote.
    DoubleQuoted,
    /// Back-ticked; a doubled back-tick is one.
    BackTicked,
    /// Letters, digits and `_`, and `$` inside.
    Word,
    /// One other sign.
    Sign(char),
}

/// A piece of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Where it starts, in bytes.
    pub(crate) start: usize,
    /// False for a quote or comment that the text ends within.
    pub(crate) is_closed: bool,
}

impl Token<'_> {
    /// Where it ends, in bytes.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Neither code nor data.
    pub(crate) fn is_trivia(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Comment)
    }

    pub(crate) fn is_sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }

    /// Whether it is this word, in any case.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// What stands between the quotes, with doubled ones made single.
    pub(crate) fn unquoted(&self) -> String {
        let quote = match self.kind {
            Kind::Text => '\'',
            Kind::DoubleQuoted => '"',
            Kind::BackTicked => '`',
            _ => return self.text.to_owned(),
        };
        let inner = self.text.get(1..).unwrap_or_default();
        let inner = if self.is_closed {
            inner.strip_suffix(quote).unwrap_or(inner)
        } else {
            inner
        };
        inner.replace(&format!("{quote}{quote}"), &String::from(quote))
    }
}

/// The pieces of `text`, in order.
pub(crate) fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

/// An iterator over pieces.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = &self.text[self.at..];
        let (kind, length, is_closed) = piece(rest)?;
        let token = Token {
            kind,
            text: &rest[..length],
            start: self.at,
            is_closed,
        };
        self.at += length;
        Some(token)
    }
}

/// White space, and what is invisible without being white space to Unicode.
pub(crate) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{feff}' | '\u{200b}' | '\u{2060}')
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Kind and length of the first piece of `rest`, and whether it is closed.
fn piece(rest: &str) -> Option<(Kind, usize, bool)> {
    let first = rest.chars().next()?;
    let (kind, (length, is_closed)) = match first {
        _ if is_blank(first) => (Kind::Blank, (span(rest, is_blank), true)),
        '-' if rest.starts_with("--") => (Kind::Comment, line_comment(rest)),
        '/' if rest.starts_with("/*") => (Kind::Comment, block_comment(rest)),
        '\'' => (Kind::Text, quoted(rest, b'\'', false)),
        '"' => (Kind::DoubleQuoted, quoted(rest, b'"', false)),
        '`' => (Kind::BackTicked, quoted(rest, b'`', false)),
        'e' | 'E' if rest[1..].starts_with('\'') => {
            let (length, is_closed) = quoted(&rest[1..], b'\'', true);
            (Kind::OtherText, (1 + length, is_closed))
        }
        '$' => match dollar_quoted(rest) {
            Some(found) => (Kind::OtherText, found),
            None => (Kind::Sign('$'), (1, true)),
        },
        _ if is_word(first) => (
            Kind::Word,
            (span(rest, |letter| is_word(letter) || letter == '$'), true),
        ),
        sign => (Kind::Sign(sign), (sign.len_utf8(), true)),
    };
    Some((kind, length, is_closed))
}

fn span(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|letter| !belongs(letter)).unwrap_or(rest.len())
}

/// Without the line's end, which is a blank.
fn line_comment(rest: &str) -> (usize, bool) {
    (rest.find(['\n', '\r']).unwrap_or(rest.len()), true)
}

fn block_comment(rest: &str) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (2, 1_usize);
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return (at, true);
        }
    }
    (rest.len(), false)
}

fn quoted(rest: &str, quote: u8, backslash_escapes: bool) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'\\' && backslash_escapes {
            at += 2;
        } else if *byte != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return (at + 1, true);
        }
    }
    (rest.len(), false)
}

/// `None` where a `$` opens nothing, as in `$1`.
fn dollar_quoted(rest: &str) -> Option<(usize, bool)> {
    let tag_length = 1 + span(&rest[1..], is_word);
    let is_tag = !rest[1..].starts_with(|letter: char| letter.is_ascii_digit());
    if !is_tag || !rest[tag_length..].starts_with('$') {
        return None;
    }
    let fence = &rest[..=tag_length];
    let body = &rest[fence.len()..];
    Some(match body.find(fence) {
        Some(length) => (2 * fence.len() + length, true),
        None => (rest.len(), false),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text)
            .map(|token| token.kind)
            .filter(|kind| *kind != Kind::Blank)
            .collect()
    }

    #[test]
    fn pieces() {
        use Kind::{BackTicked, Comment, DoubleQuoted, OtherText, Sign, Text, Word};
        for (text, want) in [
            ("'it''s; -- x'", vec![Text]),
            (r"'a\'", vec![Text]),
            (r"E'it\'s' x", vec![OtherText, Word]),
            (r"type'a'", vec![Word, Text]),
            ("/* a /* ; */ b */ c", vec![Comment, Word]),
            ("-- a ' b\nc", vec![Comment, Word]),
            ("-- a\rc", vec![Comment, Word]),
            ("$$ ; ' $$ a", vec![OtherText, Word]),
            ("$f$ $$ ; $f$;", vec![OtherText, Sign(';')]),
            ("$1 + a$b$", vec![Sign('$'), Word, Sign('+'), Word]),
            ("\"a;\"\"b\"`c;``d`", vec![DoubleQuoted, BackTicked]),
            ("a\u{a0}\u{3000}\u{feff}b", vec![Word, Word]),
            ("naïve_表1", vec![Word]),
            ("- -", vec![Sign('-'), Sign('-')]),
        ] {
            assert_eq!(kinds(text), want, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_closed_says_so() {
        for text in [
            "'a", "'a''", "\"", "`a", "/* /* */", "/*", "/*/", "$$ $", "$a$ $b$", r"E'\'",
        ] {
            let open: Vec<_> = tokens(text).filter(|token| !token.is_closed).collect();
            assert_eq!(open.len(), 1, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(text in "(\\PC|['\"`$;/*\\-\\\\\n eE])*") {
            let together: String = tokens(&text).map(|token| token.text).collect();
            prop_assert_eq!(together, text);
        }
    }
}
