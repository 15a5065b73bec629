//! A bound on how long planning may take, seen before it starts.
//!
//! Planning cannot be stopped half-way, and DataFusion's takes time that grows with the square of
//! a chain of operators, or the cube of a list of joins: minutes for a text of 100 kB. Owns the
//! estimate and its bound. Must not know plans; it looks at tokens.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use sluice_core::error::{Error, Result};

/// About as many microseconds of planning, measured on a slow machine: chains of 2,000 operators,
/// 8,000 conditions, 2,000 unions or 158 joins.
const BUDGET: u64 = 4_000_000;

/// Conditions are cheaper than operators by so much.
const LOGIC: u64 = 16;

/// Refuses a text that would be planned for too long.
pub(super) fn check(text: &str) -> Result<()> {
    // What is no SQL is the parser's to say.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else {
        return Ok(());
    };
    if estimate(&tokens) <= BUDGET {
        return Ok(());
    }
    let message = "the statement is too complex: it has a very long chain of operators, conditions, \
                   unions or joins; a list in IN or VALUES may take its place";
    Err(Error::invalid("54001", message))
}

/// Intersections are dearer than unions by so much.
const INTERSECTION: u64 = 12;

/// `EXPLAIN` within `EXPLAIN`, at most.
const EXPLAINS: u64 = 64;

/// What was seen between a pair of parentheses.
#[derive(Default)]
struct Level {
    operators: u64,
    conditions: u64,
    unions: u64,
    joins: u64,
    /// Whether a comma is a join here.
    from: bool,
}

impl Level {
    /// Ends a chain of operators.
    fn operand(&mut self) -> u64 {
        square(std::mem::take(&mut self.operators))
    }

    /// Ends a chain of conditions, and what it holds.
    fn expression(&mut self) -> u64 {
        let conditions = square(std::mem::take(&mut self.conditions)) / LOGIC;
        self.operand().saturating_add(conditions)
    }

    /// Ends one `SELECT` of a union.
    fn select(&mut self) -> u64 {
        let joins = std::mem::take(&mut self.joins);
        self.from = false;
        self.expression()
            .saturating_add(square(joins).saturating_mul(joins))
    }

    fn whole(&mut self) -> u64 {
        self.select().saturating_add(square(self.unions))
    }

    fn keyword(&mut self, keyword: Keyword) -> u64 {
        match keyword {
            Keyword::AND | Keyword::OR | Keyword::XOR => {
                self.conditions += 1;
                self.operand()
            }
            Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::DIV => {
                self.operators += 1;
                0
            }
            Keyword::UNION => {
                self.unions += 1;
                self.select()
            }
            // Planned as joins.
            Keyword::INTERSECT | Keyword::EXCEPT => {
                self.unions += INTERSECTION;
                self.select()
            }
            // The parser follows each into its statement without a look at the stack.
            Keyword::EXPLAIN => BUDGET / EXPLAINS,
            Keyword::FROM => {
                self.from = true;
                self.expression()
            }
            Keyword::JOIN => {
                self.joins += 1;
                self.expression()
            }
            Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER => {
                self.from = false;
                self.expression()
            }
            Keyword::SELECT | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::ON => {
                self.expression()
            }
            _ => 0,
        }
    }
}

fn estimate(tokens: &[Token]) -> u64 {
    let mut cost: u64 = 0;
    let mut levels = vec![Level::default()];
    for token in tokens {
        let Some(level) = levels.last_mut() else {
            break;
        };
        let added = match token {
            Token::LParen => {
                levels.push(Level::default());
                0
            }
            Token::RParen => {
                let added = level.whole();
                if levels.len() > 1 {
                    levels.pop();
                }
                added
            }
            Token::Comma => {
                level.joins += u64::from(level.from);
                level.expression()
            }
            Token::Word(word) => level.keyword(word.keyword),
            Token::Whitespace(_) | Token::Number(..) | Token::Period | Token::SemiColon => 0,
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) | Token::RBracket => 0,
            // Everything else stands between two operands, or nearly so.
            _ => {
                level.operators += 1;
                0
            }
        };
        cost = cost.saturating_add(added);
    }
    levels
        .iter_mut()
        .fold(cost, |cost, level| cost.saturating_add(level.whole()))
}

fn square(n: u64) -> u64 {
    n.saturating_mul(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> bool {
        match check(text) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.sqlstate(), "54001");
                false
            }
        }
    }

    #[test]
    fn long_chains_are_refused() {
        for (start, link, end, most) in [
            ("SELECT 1", " + 1", "", 1_900),
            ("SELECT x", "::INT", "", 1_900),
            ("SELECT a", "[1]", " FROM t", 1_900),
            ("SELECT (SELECT 1", " || 'x'", ")", 1_900),
            ("SELECT 1", " IS NULL", "", 1_900),
            ("SELECT 1 WHERE true", " AND a = 1", "", 7_900),
            ("SELECT 1 WHERE true", " OR (a = 1 AND b = 2)", "", 7_000),
            ("SELECT 1", " UNION ALL SELECT 1", "", 1_900),
            ("SELECT 1", " INTERSECT SELECT 1", "", 160),
            ("", "EXPLAIN ", "SELECT 1", 60),
            ("SELECT * FROM t", " JOIN t ON a = b", "", 150),
            ("SELECT * FROM t", ", t", " WHERE a = b", 150),
            // Several chains share the budget.
            (
                "SELECT ",
                "(1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1), ",
                "1",
                30_000,
            ),
        ] {
            let text = |n: usize| format!("{start}{}{end}", link.repeat(n));
            assert!(passes(&text(most)), "{most} x {link}");
            assert!(!passes(&text(most * 2)), "{} x {link}", most * 2);
        }
    }

    #[test]
    fn long_lists_pass() {
        let list = |item: &str, n| vec![item; n].join(", ");
        assert!(passes(&format!(
            "SELECT * FROM t WHERE a IN ({})",
            list("1", 100_000)
        )));
        assert!(passes(&format!(
            "SELECT * FROM t WHERE a = 1 AND b NOT IN ({})",
            list("-1", 100_000)
        )));
        assert!(passes(&format!(
            "INSERT INTO t VALUES {}",
            list("(1, 'x', -2.5)", 100_000)
        )));
        assert!(passes(&format!(
            "SELECT {} FROM t",
            list("a + 1 AS b", 10_000)
        )));
        assert!(passes(&format!(
            "SELECT CASE {} END",
            "WHEN a = 1 THEN 2 ".repeat(10_000)
        )));
        assert!(passes(&format!(
            "SELECT '{}' -- {}",
            "+ ".repeat(50_000),
            "+ ".repeat(50_000)
        )));
        assert!(passes("no SQL ' at all"));
        assert!(passes(&")".repeat(10)));
    }
}
