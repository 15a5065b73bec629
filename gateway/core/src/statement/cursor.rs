//! Walks over the pieces of one of our own statements: words, keys, values, names, the end. Every
//! failure says what was expected, where, and the statement's form. Must not know which
//! statements there are.

use super::lexer::{Kind, Token, tokens};
use crate::error::{Error, Result};

/// A place in a statement.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    /// How the statement is written, for errors.
    form: &'static str,
}

impl<'a> Cursor<'a> {
    /// A cursor behind the first word of `text`.
    pub(crate) fn after_first_word(text: &'a str, form: &'static str) -> Self {
        let mut cursor = Self {
            text,
            tokens: tokens(text).collect(),
            at: 0,
            form,
        };
        cursor.next();
        cursor
    }

    /// Fails at the next token, or at the end.
    pub(crate) fn fail<T>(&mut self, what: &str) -> Result<T> {
        let at = self
            .peek()
            .map_or(self.text.trim_end().len(), |token| token.start);
        Err(syntax(self.text, at, what, self.form))
    }

    /// The next token that is not blank or comment.
    pub(crate) fn peek(&mut self) -> Option<Token<'a>> {
        while self.tokens.get(self.at).is_some_and(Token::is_trivia) {
            self.at += 1;
        }
        self.tokens.get(self.at).copied()
    }

    /// The token after the next one.
    pub(crate) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens[self.at..]
            .iter()
            .filter(|token| !token.is_trivia())
            .nth(1)
            .copied()
    }

    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Steps over `word` if it comes next.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.is_word(word));
        self.at += usize::from(is_next);
        is_next
    }

    pub(crate) fn take_sign(&mut self, sign: char) -> bool {
        let is_next = self.peek().is_some_and(|token| token.is_sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    /// Steps over all of `words`, one behind the other and with nothing after them, or over none.
    pub(crate) fn take_last_words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let fits = words.iter().all(|word| self.take_word(word)) && self.is_at_end();
        if !fits {
            self.at = start;
        }
        fits
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        match self.is_at_end() {
            true => Ok(()),
            false => self.fail("nothing more was expected"),
        }
    }

    /// A key: words, back-ticked pieces and `.`, `-`, `:` without blanks between them. `None`
    /// when none begins here.
    pub(crate) fn key(&mut self) -> Option<String> {
        let first = self.peek()?;
        if !matches!(first.kind, Kind::Word | Kind::BackTicked) {
            return None;
        }
        let mut key = String::new();
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                Kind::Word | Kind::BackTicked => key.push_str(&token.unquoted()),
                Kind::Sign(sign @ ('.' | '-' | ':')) => key.push(sign),
                _ => break,
            }
            self.at += 1;
        }
        (!key.trim().is_empty()).then_some(key)
    }

    /// A name of a catalog or schema. Without quotes it is folded to lower case.
    pub(crate) fn name(&mut self) -> Result<String> {
        let name = match self.peek() {
            Some(token) if token.kind == Kind::Word => token.text.to_ascii_lowercase(),
            Some(token) if matches!(token.kind, Kind::BackTicked | Kind::DoubleQuoted) => {
                token.unquoted()
            }
            _ => return self.fail("a name was expected"),
        };
        if name.is_empty() {
            return self.fail("a name cannot be empty");
        }
        self.at += 1;
        Ok(name)
    }

    /// A value, up to the end: a quoted string, or bare text without quotes and comments.
    pub(crate) fn value(&mut self) -> Result<String> {
        let Some(first) = self.peek() else {
            return self.fail("a value was expected; write '' for an empty one");
        };
        if first.kind == Kind::Text {
            self.at += 1;
            return self.end().map(|()| first.unquoted());
        }
        let rest = &self.tokens[self.at..];
        let count = rest
            .iter()
            .rposition(|token| !token.is_trivia())
            .map_or(0, |last| last + 1);
        let bare = &rest[..count];
        let refused = bare.iter().position(|token| !is_bare(token));
        if let Some(position) = refused {
            self.at += position;
            let token = &self.tokens[self.at];
            let message = match token.kind {
                Kind::Comment => "a value that holds a comment sign must be in single quotes",
                _ => "a value that holds a quote must be in single quotes, with '' for each",
            };
            return Err(syntax(self.text, token.start, message, self.form));
        }
        self.at += count;
        let end = bare.last().map_or(first.end(), Token::end);
        Ok(self.text[first.start..end].to_owned())
    }
}

fn is_bare(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Blank | Kind::Word | Kind::Sign(_))
}

/// An error in the grammar, with the place in lines and columns and the form of the statement.
pub(crate) fn syntax(text: &str, at: usize, what: &str, form: &str) -> Error {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|letter| *letter != '\n')
        .count()
        + 1;
    let mut message = format!("line {line}, column {column}: {what}");
    if !form.is_empty() {
        message.push_str("; the form is ");
        message.push_str(form);
    }
    Error::invalid("42601", message)
}
