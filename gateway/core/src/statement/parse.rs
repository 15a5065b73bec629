//! From a text to a [`Statement`]. Consumes all of the text or fails with 42601 and a position.
//! Must not know what a statement does.

use super::cursor::{Cursor, syntax};
use super::lexer::{Token, tokens};
use super::{ExplainDelivery, Query, Reset, Set, SetTimeZone, Show, ShowAll, Statement, Use};
use crate::error::{Error, Result};

/// Longest text of a statement of ours; values of settings are shorter.
const MAX_OWN: usize = 256 << 10;

/// The one key that the grammar itself speaks of, by `TIME ZONE`.
const TIME_ZONE: &str = "session.timeZone";

const SET: &str = "SET, SET -v, SET key, SET key = value or SET key = 'value'";
const SET_TIME_ZONE: &str = "SET TIME ZONE 'zone' or SET TIME ZONE LOCAL";
const RESET: &str = "RESET or RESET key";
const USE: &str = "USE schema, USE catalog.schema, USE CATALOG catalog or USE SCHEMA schema";
const EXPLAIN_DELIVERY: &str = "EXPLAIN DELIVERY statement";

/// Parses `text`, which must be one statement; one final `;` and comments around are allowed.
///
/// # Errors
/// 42601 with line and column for an empty text, for two statements, and for what is wrong in a
/// statement of ours; 0A000 for `SET TIME ZONE INTERVAL`; 54000 for a statement of ours that is
/// longer than any may be.
pub fn parse(text: &str) -> Result<Statement> {
    let one = one_statement(text)?;
    let own: fn(&str) -> Result<Statement> = match one.first {
        word if word.is_word("SET") => set,
        word if word.is_word("RESET") => reset,
        word if word.is_word("USE") => use_names,
        word if word.is_word("EXPLAIN") && one.second.is_some_and(is_delivery) => explain_delivery,
        word if word.is_word("SHOW") => return Ok(show(&one).unwrap_or_else(|| query(text))),
        _ => return Ok(query(text)),
    };
    if let Some(open) = one.open {
        return Err(syntax(
            text,
            open.start,
            "what begins here is not closed",
            "",
        ));
    }
    if one.body.len() > MAX_OWN && !one.first.is_word("EXPLAIN") {
        return Err(Error::invalid(
            "54000",
            format!("the statement has over {MAX_OWN} bytes"),
        ));
    }
    own(one.body)
}

/// A text that holds one statement.
struct One<'a> {
    /// The text without the final `;` and what follows it.
    body: &'a str,
    first: Token<'a>,
    second: Option<Token<'a>>,
    /// A quote or comment without an end. For a query, that is the engine's to report.
    open: Option<Token<'a>>,
}

fn one_statement(text: &str) -> Result<One<'_>> {
    let (mut first, mut second, mut open, mut end) = (None, None, None, None);
    for token in tokens(text) {
        if !token.is_closed {
            open = Some(token);
        }
        if token.is_trivia() {
            continue;
        }
        if end.is_some() {
            let what = "one statement at a time: there is more after ';' \
                        (a value that holds ';' must be in single quotes)";
            return Err(syntax(text, token.start, what, ""));
        }
        match token {
            token if token.is_sign(';') => end = Some(token.start),
            token if first.is_none() => first = Some(token),
            token if second.is_none() => second = Some(token),
            _ => {}
        }
    }
    let Some(first) = first else {
        return Err(syntax(text, 0, "there is no statement in the text", ""));
    };
    Ok(One {
        body: &text[..end.unwrap_or(text.len())],
        first,
        second,
        open,
    })
}

fn query(text: &str) -> Statement {
    Statement::Query(Query {
        text: text.to_owned(),
    })
}

fn is_delivery(token: Token<'_>) -> bool {
    token.is_word("DELIVERY")
}

fn set(body: &str) -> Result<Statement> {
    let mut cursor = Cursor::after_first_word(body, SET);
    let verbose = take_verbose(&mut cursor)?;
    if cursor.is_at_end() {
        return Ok(Statement::ShowAll(ShowAll { verbose }));
    }
    let Some(key) = cursor.key() else {
        return cursor.fail("a key was expected, in back-ticks if it needs quotes");
    };
    if cursor.is_at_end() {
        return Ok(Statement::Show(Show { key, verbose }));
    }
    if key.eq_ignore_ascii_case("TIME") && cursor.take_word("ZONE") {
        return set_time_zone(body);
    }
    if verbose || !(cursor.take_sign('=') || cursor.take_word("TO")) {
        return cursor.fail("'=' or the end was expected after the key");
    }
    Ok(Statement::Set(Set {
        key,
        value: cursor.value()?,
    }))
}

/// `-v`, written as one.
fn take_verbose(cursor: &mut Cursor<'_>) -> Result<bool> {
    let Some(dash) = cursor.peek().filter(|token| token.is_sign('-')) else {
        return Ok(false);
    };
    cursor.next();
    match cursor.peek() {
        Some(token) if token.is_word("v") && token.start == dash.end() => {
            cursor.next();
            Ok(true)
        }
        _ => cursor.fail("-v is the one option there is"),
    }
}

fn set_time_zone(body: &str) -> Result<Statement> {
    let mut cursor = Cursor::after_first_word(body, SET_TIME_ZONE);
    cursor.next();
    cursor.next();
    if cursor.take_last_words(&["LOCAL"]) || cursor.take_last_words(&["DEFAULT"]) {
        return Ok(Statement::Reset(Reset {
            key: Some(TIME_ZONE.to_owned()),
        }));
    }
    if cursor.peek().is_some_and(|token| token.is_word("INTERVAL")) {
        let message = "SET TIME ZONE INTERVAL is not supported; \
                       give the offset as SET TIME ZONE '+08:00'";
        return Err(Error::invalid("0A000", message));
    }
    Ok(Statement::SetTimeZone(SetTimeZone {
        zone: cursor.value()?,
    }))
}

fn reset(body: &str) -> Result<Statement> {
    let mut cursor = Cursor::after_first_word(body, RESET);
    if cursor.is_at_end() || cursor.take_last_words(&["ALL"]) {
        return Ok(Statement::Reset(Reset { key: None }));
    }
    if cursor.take_last_words(&["TIME", "ZONE"]) {
        return Ok(Statement::Reset(Reset {
            key: Some(TIME_ZONE.to_owned()),
        }));
    }
    let Some(key) = cursor.key() else {
        return cursor.fail("a key was expected, in back-ticks if it needs quotes");
    };
    cursor.end()?;
    Ok(Statement::Reset(Reset { key: Some(key) }))
}

/// `None`: not one of ours, as `SHOW TABLES`. The engine says what is wrong with it, if anything.
fn show(one: &One<'_>) -> Option<Statement> {
    if one.open.is_some() || one.body.len() > MAX_OWN {
        return None;
    }
    let mut cursor = Cursor::after_first_word(one.body, "");
    for (words, statement) in [
        (&["ALL"][..], Statement::ShowAll(ShowAll { verbose: false })),
        (
            &["ALL", "VERBOSE"],
            Statement::ShowAll(ShowAll { verbose: true }),
        ),
        (&["DELIVERY"], Statement::ShowDelivery),
        (&["CLIENT"], Statement::ShowClient),
        (
            &["TIME", "ZONE"],
            Statement::Show(Show {
                key: TIME_ZONE.to_owned(),
                verbose: false,
            }),
        ),
    ] {
        if cursor.take_last_words(words) {
            return Some(statement);
        }
    }
    let key = cursor.key().filter(|key| key.contains('.'))?;
    let verbose = cursor.take_word("VERBOSE");
    cursor
        .is_at_end()
        .then_some(Statement::Show(Show { key, verbose }))
}

fn use_names(body: &str) -> Result<Statement> {
    let mut cursor = Cursor::after_first_word(body, USE);
    let keyword = take_keyword(&mut cursor);
    let first = cursor.name()?;
    let second = match cursor.take_sign('.') {
        true => Some(cursor.name()?),
        false => None,
    };
    if second.is_some() && keyword == Some("CATALOG") {
        return cursor.fail("a catalog has a name of one part");
    }
    cursor.end()?;
    let (catalog, schema) = match (keyword, second) {
        (Some("CATALOG"), _) => (Some(first), None),
        (_, None) => (None, Some(first)),
        (_, Some(second)) => (Some(first), Some(second)),
    };
    Ok(Statement::Use(Use { catalog, schema }))
}

/// `CATALOG`, `SCHEMA` and the like, unless the word is itself the name.
fn take_keyword(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    let keyword = ["CATALOG", "SCHEMA", "DATABASE", "NAMESPACE"]
        .into_iter()
        .find(|word| cursor.peek().is_some_and(|token| token.is_word(word)))?;
    let is_keyword = cursor
        .peek_second()
        .is_some_and(|token| !token.is_sign('.'));
    is_keyword.then(|| {
        cursor.next();
        keyword
    })
}

fn explain_delivery(body: &str) -> Result<Statement> {
    let mut code = tokens(body).filter(|token| !token.is_trivia()).skip(2);
    match code.next() {
        Some(statement) => {
            let statement = body[statement.start..].to_owned();
            Ok(Statement::ExplainDelivery(ExplainDelivery { statement }))
        }
        None => Err(syntax(
            body,
            body.len(),
            "a statement was expected",
            EXPLAIN_DELIVERY,
        )),
    }
}
