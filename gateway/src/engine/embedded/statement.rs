//! One statement: from its text to a running plan.
//!
//! Owns which statements a session may run, and the checks before they run. Must not know where
//! rows go. What DDL changes is the session's own catalog.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, MemTable, TableProvider, UrlTableFactory};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, DmlStatement, LogicalPlan, LogicalPlanBuilder, WriteOp,
};
use datafusion::physical_plan::{ExecutionPlan, execute_stream, execute_stream_partitioned};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures::StreamExt;
use sluice_core::error::{Error, Result};

use super::Shared;
use super::bounded;
use super::complexity;
use super::error::{carry, translate, unsupported};
use super::expansion;
use super::files::{self, looks_like_path};
use super::policy::{Access, Policy};
use super::show;
use super::stop::Stop;
use super::tables::SessionTable;

/// The share of a statement's memory that one constant may take, repeated over a batch.
const CONSTANTS: usize = 4;

/// What a statement needs of its session.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) shared: Arc<Shared>,
    pub(super) context: SessionContext,
    /// Where the session's tables in memory count.
    pub(super) tables: Arc<dyn MemoryPool>,
    /// How this statement is told to stop.
    pub(super) stop: Stop,
}

impl Place {
    /// Plans `text` and starts it; DDL is done when this returns.
    pub(super) async fn start(self, text: Arc<str>) -> Result<SendableRecordBatchStream> {
        complexity::check(&text)?;
        let state = self.context.state();
        let statement = parse(&state, &text)?;
        let statement = match show::rewrite(&state, &statement)? {
            Some(query) => parse(&state, &query)?,
            None => statement,
        };
        refuse_statement(&statement)?;
        expansion::check_names(&statement)?;
        let statement = session_local(statement);
        let plan = self.plan(&state, statement).await.map_err(translate)?;
        expansion::check_plan(&plan).map_err(translate)??;
        check(&plan, &self.shared.policy).map_err(translate)?;
        let plan = match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(command)) => {
                self.create_table(&state, command).await?;
                nothing()?
            }
            plan @ LogicalPlan::Ddl(_) => {
                self.context
                    .execute_logical_plan(plan)
                    .await
                    .map_err(translate)?;
                nothing()?
            }
            plan => plan,
        };
        let (plan, task) = self.physical(&state, &plan).await.map_err(translate)?;
        execute_stream(plan, task).map_err(translate)
    }

    /// Plans a statement in which paths may stand as table names.
    async fn plan(
        &self,
        state: &SessionState,
        statement: Statement,
    ) -> DataFusionResult<LogicalPlan> {
        let factory = PathTables {
            policy: Arc::clone(&self.shared.policy),
            state: state.clone(),
        };
        let catalogs = Arc::clone(state.catalog_list());
        let mut state = state.clone();
        state.register_catalog_list(Arc::new(DynamicFileCatalog::new(
            catalogs,
            Arc::new(factory),
        )));
        state.statement_to_plan(statement).await
    }

    /// The plan to run, and what it runs with: a memory pool of its own on the shared runtime.
    async fn physical(
        &self,
        state: &SessionState,
        plan: &LogicalPlan,
    ) -> DataFusionResult<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let plan = state.optimize(plan)?;
        let usual = state.config().batch_size();
        let limit = self.shared.statement_memory / CONSTANTS;
        let batch = bounded::batch_size(&plan, usual, limit)?;
        let mut state = state.clone();
        if batch < usual {
            *state.config_mut() = state.config().clone().with_batch_size(batch);
        }
        let task = TaskContext::from(&state).with_runtime(self.shared.statement_runtime());
        let plan = state
            .query_planner()
            .create_physical_plan(&plan, &state)
            .await?;
        Ok((self.stop.watch(plan)?, Arc::new(task)))
    }

    /// `CREATE TABLE`, with or without rows, under the limits of statement and session.
    async fn create_table(&self, state: &SessionState, command: CreateMemoryTable) -> Result<()> {
        let CreateMemoryTable {
            name,
            if_not_exists,
            or_replace,
            ..
        } = &command;
        let exists = self.context.table_exist(name.clone()).map_err(translate)?;
        match (exists, if_not_exists, or_replace) {
            (true, true, true) => {
                let message = "IF NOT EXISTS and OR REPLACE exclude each other";
                return Err(Error::invalid("42601", message));
            }
            (true, true, false) => return Ok(()),
            (true, false, false) => {
                let message = format!("table \"{name}\" already exists");
                return Err(Error::invalid("42P07", message));
            }
            _ => {}
        }
        let (name, table) = self.fill(state, command).await.map_err(translate)?;
        if exists {
            self.context
                .deregister_table(name.clone())
                .map_err(translate)?;
        }
        self.context
            .register_table(name, Arc::new(table))
            .map_err(translate)?;
        Ok(())
    }

    async fn fill(
        &self,
        state: &SessionState,
        command: CreateMemoryTable,
    ) -> DataFusionResult<(datafusion::common::TableReference, SessionTable)> {
        let CreateMemoryTable {
            name,
            input,
            constraints,
            column_defaults,
            ..
        } = command;
        let schema = Arc::clone(input.schema().inner());
        let (plan, task) = self.physical(state, &input).await?;
        let memory = MemoryConsumer::new(format!("table {name}")).register(&self.tables);
        let mut partitions = Vec::new();
        for mut rows in execute_stream_partitioned(plan, task)? {
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await.transpose()? {
                memory.try_grow(batch.get_array_memory_size())?;
                batches.push(batch);
            }
            partitions.push(batches);
        }
        let rows = MemTable::try_new(schema, partitions)?
            .with_constraints(constraints)
            .with_column_defaults(column_defaults.into_iter().collect());
        Ok((name, SessionTable::new(rows, memory)))
    }
}

/// Reads a text that holds exactly one statement.
fn parse(state: &SessionState, text: &str) -> Result<Statement> {
    let limit = state.config_options().sql_parser.recursion_limit.get();
    let mut statements = DFParserBuilder::new(text)
        .with_dialect(&GenericDialect {})
        .with_recursion_limit(limit)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(translate)?;
    let statement = statements.pop_front();
    if !statements.is_empty() {
        let message = "several statements in one text; send them one by one";
        return Err(Error::invalid("42601", message));
    }
    statement.ok_or_else(|| Error::invalid("42601", "there is no statement in the text"))
}

fn refuse_statement(statement: &Statement) -> Result<()> {
    let what = match statement {
        Statement::Reset(_) => "RESET in this form",
        Statement::Explain(explain) => return refuse_statement(&explain.statement),
        Statement::Statement(statement) => match statement.as_ref() {
            SqlStatement::Set(_) => "SET in this form",
            SqlStatement::Prepare { .. }
            | SqlStatement::Execute { .. }
            | SqlStatement::Deallocate { .. } => "prepared statements in SQL",
            SqlStatement::StartTransaction { .. }
            | SqlStatement::Commit { .. }
            | SqlStatement::Rollback { .. }
            | SqlStatement::Savepoint { .. } => "transactions",
            SqlStatement::CreateFunction { .. } | SqlStatement::DropFunction { .. } => {
                "functions made by SQL"
            }
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    Err(unsupported(format!(
        "{what}: the embedded engine has no such thing"
    )))
}

/// Looks for what would touch places that are not allowed. The stores ask again at each access;
/// here the answer comes before anything is done, and with the location as the user wrote it.
fn check(plan: &LogicalPlan, policy: &Policy) -> DataFusionResult<()> {
    if let LogicalPlan::Explain(explain) = plan
        && let LogicalPlan::Dml(DmlStatement { op, .. }) = explain.plan.as_ref()
        && !matches!(op, WriteOp::Insert(_))
    {
        // Tables in memory change while such a statement is planned.
        return Err(DataFusionError::NotImplemented(format!(
            "EXPLAIN of {}",
            op.name()
        )));
    }
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Copy(copy) => {
                policy
                    .check_location(&copy.output_url, Access::Write)
                    .map_err(carry)?;
            }
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(command)) => {
                for location in &command.locations {
                    policy
                        .check_location(location, Access::Read)
                        .map_err(carry)?;
                }
            }
            LogicalPlan::Ddl(
                DdlStatement::CreateIndex(_)
                | DdlStatement::CreateFunction(_)
                | DdlStatement::DropFunction(_),
            ) => {
                return Err(carry(unsupported(
                    "indexes and functions made by SQL are not supported",
                )));
            }
            LogicalPlan::Statement(statement) => {
                return Err(carry(unsupported(format!(
                    "{} is not supported",
                    statement.name()
                ))));
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Every table and view is the session's own, so `TEMPORARY` says nothing new.
fn session_local(mut statement: Statement) -> Statement {
    match &mut statement {
        Statement::CreateExternalTable(create) => create.temporary = false,
        Statement::Statement(statement) => match statement.as_mut() {
            SqlStatement::CreateTable(create) => create.temporary = false,
            SqlStatement::CreateView(create) => create.temporary = false,
            _ => {}
        },
        _ => {}
    }
    statement
}

/// What DDL answers: no columns, no rows.
fn nothing() -> Result<LogicalPlan> {
    LogicalPlanBuilder::empty(false).build().map_err(translate)
}

/// Makes tables of paths and URLs that stand where a table's name is expected.
struct PathTables {
    policy: Arc<Policy>,
    state: SessionState,
}

#[async_trait]
impl UrlTableFactory for PathTables {
    async fn try_new(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        if !looks_like_path(name) {
            return Ok(None);
        }
        self.policy
            .check_location(name, Access::Read)
            .map_err(carry)?;
        let table = files::table(&self.state, ListingTableUrl::parse(name)?).await?;
        Ok(Some(Arc::new(table)))
    }
}

impl fmt::Debug for PathTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathTables").finish_non_exhaustive()
    }
}
