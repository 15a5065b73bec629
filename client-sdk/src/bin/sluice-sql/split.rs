//! Where one statement ends and the next begins. Owns as much of SQL's lexical grammar as that
//! takes: strings, quoted names, dollar quotes, comments that nest, and compound statements. Must
//! not know what a statement means.
//!
//! Strings follow the standard: `''` is a quote and a backslash is itself, except in `E'…'`.

/// A text cut into statements.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Split<'a> {
    /// Statements that a `;` ended, without it; none is blank.
    pub(crate) complete: Vec<&'a str>,
    /// What follows the last `;`, trimmed: empty when that is only blanks and comments.
    pub(crate) rest: &'a str,
}

impl<'a> Split<'a> {
    /// All statements, the one without a `;` at its end included.
    pub(crate) fn all(self) -> Vec<&'a str> {
        let rest = Some(self.rest).filter(|rest| !rest.is_empty());
        self.complete.into_iter().chain(rest).collect()
    }
}

/// Cuts `text` at the semicolons that end statements.
pub(crate) fn split(text: &str) -> Split<'_> {
    let mut complete = Vec::new();
    let mut statement = Statement::default();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let (token, length) = next_token(&text[at..]);
        let end = at + length;
        if token == Token::Semicolon && statement.ends_here() {
            if !statement.is_blank() {
                complete.push(text[start..at].trim());
            }
            statement = Statement::default();
            start = end;
        } else {
            statement.take(token, &text[at..end]);
        }
        at = end;
    }
    let rest = if statement.is_blank() {
        ""
    } else {
        text[start..].trim()
    };
    Split { complete, rest }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token {
    /// White space or a comment.
    Blank,
    Word,
    Semicolon,
    /// Anything else, a string for example.
    Other,
}

/// What is known of a statement so far: just enough to see which `;` are inside of it.
#[derive(Default)]
struct Statement {
    first: Option<Word>,
    last: Option<Word>,
    /// Whether it creates something with a body of statements.
    routine: bool,
    /// Blocks and CASEs that are open.
    depth: usize,
    begins: usize,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Word {
    Begin,
    Case,
    Create,
    End,
    /// After END: closes what was not counted when it opened.
    Control,
    /// After BEGIN: a transaction and not a block.
    Transaction,
    Other,
}

impl Statement {
    fn is_blank(&self) -> bool {
        self.first.is_none()
    }

    /// `BEGIN;` alone opens a transaction; in an open block a `;` ends an inner statement.
    fn ends_here(&self) -> bool {
        let only_begin =
            self.begins == 1 && self.first == Some(Word::Begin) && self.last == self.first;
        self.depth == 0 || (only_begin && self.depth == 1)
    }

    fn take(&mut self, token: Token, text: &str) {
        let word = match token {
            Token::Blank => return,
            Token::Word => word_of(text),
            Token::Semicolon | Token::Other => Word::Other,
        };
        let previous = self.last.replace(word);
        let first = *self.first.get_or_insert(word);
        if token == Token::Word && first == Word::Create {
            self.routine |= is_any_of(text, &["procedure", "function", "trigger"]);
        }
        match word {
            Word::Begin if self.routine || first == Word::Begin || self.depth > 0 => {
                self.begins += 1;
                self.depth += 1;
            }
            Word::Transaction if previous == Some(Word::Begin) && self.begins == 1 => {
                self.depth = 0
            }
            // Elsewhere a CASE holds no `;` and need not be counted.
            Word::Case if self.depth > 0 && previous != Some(Word::End) => self.depth += 1,
            Word::Control if previous == Some(Word::End) && self.begins > 0 => self.depth += 1,
            Word::End => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

fn word_of(text: &str) -> Word {
    let kinds: [(Word, &[&str]); 6] = [
        (Word::Begin, &["begin"]),
        (Word::Case, &["case"]),
        (Word::Create, &["create"]),
        (Word::End, &["end"]),
        (Word::Control, &["if", "while", "loop", "repeat", "for"]),
        (
            Word::Transaction,
            &["transaction", "tran", "work", "isolation", "read"],
        ),
    ];
    let found = kinds.into_iter().find(|(_, names)| is_any_of(text, names));
    found.map_or(Word::Other, |(word, _)| word)
}

fn is_any_of(text: &str, names: &[&str]) -> bool {
    names.iter().any(|name| text.eq_ignore_ascii_case(name))
}

/// The token that `text`, which is not empty, begins with, and its length. What is not closed
/// reaches to the end.
fn next_token(text: &str) -> (Token, usize) {
    let mut characters = text.chars();
    let first = characters.next().unwrap_or(' ');
    let second = characters.next();
    match (first, second) {
        (';', _) => (Token::Semicolon, 1),
        ('-', Some('-')) => (Token::Blank, text.find('\n').unwrap_or(text.len())),
        ('/', Some('*')) => (Token::Blank, comment(text)),
        ('\'', _) => (Token::Other, quoted(text, '\'', false)),
        ('e' | 'E', Some('\'')) => (Token::Other, 1 + quoted(&text[1..], '\'', true)),
        ('"' | '`', _) => (Token::Other, quoted(text, first, false)),
        ('$', _) => (Token::Other, dollar_quoted(text)),
        _ if first.is_whitespace() => (Token::Blank, run(text, char::is_whitespace)),
        _ if first.is_alphanumeric() || first == '_' => (
            Token::Word,
            run(text, |c| c.is_alphanumeric() || c == '_' || c == '$'),
        ),
        _ => (Token::Other, first.len_utf8()),
    }
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// A doubled quote is read as the end of one string and the beginning of the next, which comes to
/// the same.
fn quoted(text: &str, quote: char, backslash: bool) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if backslash && character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + character.len_utf8();
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// `$$…$$` or `$tag$…$tag$`; another dollar sign, as in `$1`, stands for itself.
fn dollar_quoted(text: &str) -> usize {
    let tag = run(&text[1..], |c| c.is_alphanumeric() || c == '_');
    let is_tag = !text[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_tag || !text[1 + tag..].starts_with('$') {
        return 1;
    }
    let (delimiter, body) = text.split_at(tag + 2);
    body.find(delimiter)
        .map_or(text.len(), |at| delimiter.len() + at + delimiter.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_inside_of_other_things_do_not_split() {
        let whole = [
            "select ';', 'it''s; ok'",
            r#"select ";" from `a;b`"#,
            "select 1 -- one; two\n, 2",
            "select /* a; /* b; */ c; */ 1",
            r"select E'it\'s;', 1",
            r"select '\'",
            "select $$a;b$$, $x$ ; $$ ; $x$, $1",
            "select e.x, case when a then 1 end from e",
            "BEGIN select 1; IF x THEN select 2; END IF; select case when a then b end; END",
            "create procedure p() begin declare x int; begin set x = 1; end; end",
            "BEGIN WHILE i < 3 DO SET i = i + 1; END WHILE; CASE WHEN a THEN select 1; END CASE; END",
            "select a$b, 'ü;'",
        ];
        for statement in whole {
            let text = format!("{statement};\n select 2");
            let split = split(&text);
            assert_eq!(split.complete, [statement], "{text}");
            assert_eq!(split.rest, "select 2", "{text}");
        }
    }

    #[test]
    fn blanks_and_comments_are_no_statements() {
        let text = ";; -- nothing\n/* nothing */ ;select 1;\n-- the end";
        let split = split(text);
        assert_eq!(split.complete, ["select 1"]);
        assert_eq!(split.rest, "");
        assert!(super::split(" \n-- only this").all().is_empty());
    }

    #[test]
    fn a_comment_belongs_to_the_statement_that_it_stands_before() {
        let text = "select 1; -- first\nselect 2 -- second";
        assert_eq!(
            split(text).all(),
            ["select 1", "-- first\nselect 2 -- second"]
        );
    }

    #[test]
    fn transactions_end_at_once() {
        let text = "BEGIN; insert; COMMIT; begin transaction; end; begin work; select 1";
        assert_eq!(split(text).all().len(), 7);
    }

    #[test]
    fn what_is_not_closed_reaches_to_the_end() {
        for open in [
            "select 'a; b",
            "select \"a; b",
            "select /* a; b",
            "select $q$ a; b",
            "begin select 1; select 2;",
        ] {
            let split = split(open);
            assert!(split.complete.is_empty(), "{open}");
            assert_eq!(split.rest, open);
        }
    }

    #[test]
    fn any_text_is_cut_in_order_and_each_piece_is_one_statement() {
        let alphabet = [
            "'", "\"", "`", "$", "$a$", ";", "--", "\n", "/*", "*/", "e'", "\\", "ü", "begin",
            "end", "case", " ", "if",
        ];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                text.push_str(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            let mut from = 0;
            for piece in split(&text).all() {
                let at = text[from..].find(piece).unwrap();
                from += at + piece.len();
                assert_eq!(split(piece).all(), [piece], "{text:?}");
            }
        }
    }
}
