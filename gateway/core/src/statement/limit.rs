//! The literal `LIMIT n` of a query: a bound on its rows that the text itself states, so that a
//! result can be cut on the stream. Any doubt means that there is none, which is always right:
//! the engine applies its own `LIMIT` in any case.
//!
//! Must not know results; the text is looked at and never rewritten.

use sqlparser::ast::{
    Expr, Fetch, LimitClause, Query, Select, SetExpr, Statement, Value, ValueWithSpan,
};
use sqlparser::dialect::{GenericDialect, HiveDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::lexer::{Kind, tokens};
use crate::engine::Dialect;

/// Longest text that is looked at, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Most tokens that are parsed. A chain such as `1 + 1 + …` becomes a tree as deep as it is long,
/// and dropping a tree takes a stack frame per level; the parser's own limit does not count these.
const MAX_TOKENS: usize = 4_000;

/// Signs that some dialects read as escapes or comments and others do not. A session can change
/// the engine's dialect, so with one of these in the text nobody knows where a string ends.
const DOUBTS: [&str; 3] = ["\\", "#", "//"];

/// The rows that `text` bounds itself to, if it is one query whose outermost `LIMIT` or `FETCH`
/// is a literal number.
pub fn literal_limit(text: &str, dialect: Dialect) -> Option<u64> {
    if text.len() > MAX_TEXT || !may_have_limit(text) {
        return None;
    }
    if DOUBTS.iter().any(|doubt| text.contains(doubt)) {
        return None;
    }
    match parsed(text, dialect)?.as_slice() {
        [Statement::Query(query)] => bound(query),
        _ => None,
    }
}

/// Whether one of the two words is in the text outside of strings, comments and parentheses. Most
/// queries have none and need not be parsed.
fn may_have_limit(text: &str) -> bool {
    let mut depth = 0_i64;
    for token in tokens(text) {
        match token.kind {
            Kind::Sign('(') => depth += 1,
            Kind::Sign(')') => depth -= 1,
            Kind::Word if depth == 0 && (token.is_word("LIMIT") || token.is_word("FETCH")) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

fn parsed(text: &str, dialect: Dialect) -> Option<Vec<Statement>> {
    let dialect: &dyn sqlparser::dialect::Dialect = match dialect {
        Dialect::DataFusion => &GenericDialect {},
        Dialect::Hive => &HiveDialect {},
    };
    let tokens = Tokenizer::new(dialect, text)
        .tokenize_with_location()
        .ok()?;
    let code = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    if code.count() > MAX_TOKENS {
        return None;
    }
    Parser::new(dialect)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .ok()
}

/// The bound of a query whose every other clause is known to leave `LIMIT` its meaning.
fn bound(query: &Query) -> Option<u64> {
    let Query {
        with: _,
        body,
        order_by: _,
        limit_clause,
        fetch,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    if !locks.is_empty() || !pipe_operators.is_empty() || !gives_rows(body) {
        return None;
    }
    let limit = limit_clause
        .as_ref()
        .filter(|clause| !is_offset_alone(clause));
    match (limit, fetch) {
        (Some(limit), None) => limit_rows(limit),
        (None, Some(fetch)) => fetch_rows(fetch),
        (Some(limit), Some(fetch)) => Some(limit_rows(limit)?.min(fetch_rows(fetch)?)),
        (None, None) => None,
    }
}

fn is_offset_alone(clause: &LimitClause) -> bool {
    matches!(clause, LimitClause::LimitOffset { limit: None, limit_by, .. } if limit_by.is_empty())
}

/// Whether the body is a plain question, and not a change in a query's clothes.
fn gives_rows(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => is_plain(select),
        SetExpr::Query(_) | SetExpr::SetOperation { .. } | SetExpr::Values(_) => true,
        _ => false,
    }
}

fn is_plain(select: &Select) -> bool {
    select.into.is_none() && select.top.is_none()
}

fn limit_rows(clause: &LimitClause) -> Option<u64> {
    match clause {
        LimitClause::LimitOffset {
            limit: Some(limit),
            limit_by,
            offset: _,
        } => {
            if limit_by.is_empty() {
                literal(limit)
            } else {
                None
            }
        }
        // Which of the two is the offset is a matter of dialect.
        LimitClause::LimitOffset { limit: None, .. } | LimitClause::OffsetCommaLimit { .. } => None,
    }
}

fn fetch_rows(fetch: &Fetch) -> Option<u64> {
    match fetch {
        Fetch {
            with_ties: false,
            percent: false,
            quantity: Some(quantity),
        } => literal(quantity),
        _ => None,
    }
}

fn literal(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Value(ValueWithSpan {
            value: Value::Number(digits, false),
            ..
        }) => {
            let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_whole { digits.parse().ok() } else { None }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_chain_is_left_alone_and_a_short_one_fits_a_small_stack() {
        for (text, want) in [
            (format!("SELECT 1{} LIMIT 5", " + 1".repeat(1_900)), Some(5)),
            (format!("SELECT 1{} LIMIT 5", "+1".repeat(200_000)), None),
            (
                format!("SELECT 1{} LIMIT 5", " UNION SELECT 1".repeat(1_200)),
                Some(5),
            ),
            (
                format!("SELECT a{} LIMIT 5", " IS NULL".repeat(1_900)),
                Some(5),
            ),
            (
                format!("SELECT {}1{} LIMIT 5", "(".repeat(400), ")".repeat(400)),
                None,
            ),
            (format!("SELECT {}", "(".repeat(MAX_TEXT)), None),
        ] {
            // As much as a thread of the server's runtime has.
            let thread = std::thread::Builder::new().stack_size(2 << 20);
            let read = thread.spawn(move || literal_limit(&text, Dialect::DataFusion));
            assert_eq!(read.ok().and_then(|thread| thread.join().ok()), Some(want));
        }
    }

    proptest! {
        #[test]
        fn it_never_panics(words in proptest::collection::vec(
            prop_oneof![
                Just("SELECT"), Just("LIMIT"), Just("FETCH"), Just("FIRST"), Just("ROWS"),
                Just("ONLY"), Just("FROM"), Just("("), Just(")"), Just(","), Just("1"), Just("t"),
                Just("'x'"), Just("WITH"), Just("AS"), Just("OFFSET"), Just("-"), Just("BY"),
                Just("UNION"), Just(";"), Just("CASE"), Just("$1"), Just("|>"), Just("é"),
            ],
            0..24,
        )) {
            for dialect in [Dialect::DataFusion, Dialect::Hive] {
                literal_limit(&words.join(" "), dialect);
            }
        }
    }
}
