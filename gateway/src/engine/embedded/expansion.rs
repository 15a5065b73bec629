//! A bound on what a short text can grow into. A name of a `WITH` query or a view is replaced by
//! all that it stands for each time it is used, so that a chain of names that each use the one
//! before twice doubles with every link. Planning cannot be stopped half-way: such statements are
//! refused before. Must not know tokens (that is `complexity`).

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use sluice_core::error::{Error, Result};

/// Tables that a statement may read when its `WITH` names are replaced: as many joins are planned
/// in a few seconds.
const TABLES: u64 = 160;

/// Joins of a plan in which views are replaced.
const JOINS: u64 = 160;

/// Nodes of such a plan.
const NODES: u64 = 20_000;

/// Refuses a statement that its own `WITH` names make too large.
pub(super) fn check_names(statement: &Statement) -> Result<()> {
    let mut names = Names::default();
    match statement {
        Statement::Explain(explain) => return check_names(&explain.statement),
        Statement::Statement(statement) => {
            let _ = statement.visit(&mut names);
        }
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &copy.source {
                let _ = query.visit(&mut names);
            }
        }
        _ => {}
    }
    // What is written out is the text's own length, which is bounded elsewhere.
    match names.total > names.written && names.total > TABLES {
        true => Err(too_large()),
        false => Ok(()),
    }
}

/// Refuses a plan that views have made too large.
///
/// # Errors
/// What walking the plan says, and the refusal.
pub(super) fn check_plan(plan: &LogicalPlan) -> DataFusionResult<Result<()>> {
    let (mut nodes, mut joins) = (0, 0);
    plan.apply_with_subqueries(|node| {
        nodes += 1;
        joins += u64::from(matches!(node, LogicalPlan::Join(_)));
        Ok(match nodes > NODES || joins > JOINS {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(match nodes > NODES || joins > JOINS {
        true => Err(too_large()),
        false => Ok(()),
    })
}

fn too_large() -> Error {
    let message = "the statement is too complex: what its views or WITH queries stand for has too \
                   many joins or parts; store a part of it with CREATE TABLE … AS";
    Error::invalid("54001", message)
}

/// Counts tables with the names of `WITH` queries replaced.
#[derive(Default)]
struct Names {
    /// What each name known so far stands for.
    known: HashMap<String, u64>,
    /// The names of queries that are still to be walked, by where the query is.
    ahead: HashMap<usize, String>,
    /// Tables of the queries around the present place, innermost last.
    open: Vec<u64>,
    total: u64,
    written: u64,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = named.alias.name.value.to_lowercase();
            self.ahead.insert(place(&named.query), name);
        }
        self.open.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = self.open.pop().unwrap_or(0);
        match self.ahead.remove(&place(query)) {
            Some(name) => drop(self.known.insert(name, tables.max(1))),
            None => self.add(tables),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.written = self.written.saturating_add(1);
        let known = self.known.get(&relation.to_string().to_lowercase());
        let tables = known.copied().unwrap_or(1);
        self.add(tables);
        ControlFlow::Continue(())
    }
}

impl Names {
    fn add(&mut self, tables: u64) {
        let around = self.open.last_mut().unwrap_or(&mut self.total);
        *around = around.saturating_add(tables);
    }
}

fn place(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn passes(text: &str) -> bool {
        check_names(&DFParser::parse_sql(text).unwrap().pop_front().unwrap()).is_ok()
    }

    /// Each name uses the one before twice.
    fn doubling(links: usize) -> String {
        let names: Vec<_> = (1..links)
            .map(|n| format!("c{n} AS (SELECT a.* FROM c{} a, c{} b)", n - 1, n - 1))
            .collect();
        format!(
            "WITH c0 AS (SELECT * FROM t), {} SELECT * FROM c{}",
            names.join(", "),
            links - 1
        )
    }

    #[test]
    fn names_that_double_are_refused_in_every_place() {
        assert!(passes(&doubling(7)));
        for text in [
            doubling(10),
            doubling(64),
            format!("EXPLAIN {}", doubling(20)),
            format!("SELECT * FROM ({}) x", doubling(20)),
            format!("SELECT (SELECT count(*) FROM ({}) x)", doubling(20)),
            format!("CREATE TABLE y AS {}", doubling(20)),
            format!("COPY ({}) TO 'x.csv'", doubling(20)),
        ] {
            assert!(!passes(&text), "{text}");
        }
    }

    #[test]
    fn long_texts_without_names_are_not_its_business() {
        assert!(passes(&vec!["SELECT * FROM t"; 1_000].join(" UNION ALL ")));
        assert!(passes("WITH a AS (SELECT 1) SELECT * FROM a, a b, a c"));
        assert!(passes(
            "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r"
        ));
    }
}
