//! The two kinds of table that need more than DataFusion gives: configured ones, which SQL can
//! only read, and those that `CREATE TABLE` makes, whose rows count against the session's memory.
//!
//! Owns these providers. Must not know where tables come from or in which schema they are.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::{Constraints, DFSchemaRef, Result, SchemaExt, Statistics, not_impl_err};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::PartitionData;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::StreamExt;
use sluice_core::error::{Error, ErrorKind};

use super::error::carry;

/// A table of the configuration.
#[derive(Debug)]
pub(super) struct ReadOnly {
    name: String,
    inner: Arc<dyn TableProvider>,
}

impl ReadOnly {
    pub(super) fn over(name: &str, inner: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        Arc::new(Self {
            name: name.to_owned(),
            inner,
        })
    }

    fn refuse<T>(&self) -> Result<T> {
        let message = format!(
            "table \"{}\" belongs to the server's configuration: it is read only",
            self.name
        );
        Err(carry(Error::new(ErrorKind::Forbidden, message)))
    }
}

#[async_trait]
impl TableProvider for ReadOnly {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.inner.constraints()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.inner.get_logical_plan()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.scan(state, projection, filters, limit).await
    }

    async fn scan_with_args<'a>(
        &self,
        state: &dyn Session,
        args: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        self.inner.scan_with_args(state, args).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.inner.statistics()
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse()
    }

    async fn delete_from(&self, _: &dyn Session, _: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse()
    }

    async fn update(
        &self,
        _: &dyn Session,
        _: Vec<(String, Expr)>,
        _: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse()
    }

    async fn truncate(&self, _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse()
    }

    async fn merge_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: DFSchemaRef,
        _: Expr,
        _: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.refuse()
    }
}

/// A table in memory that holds a reservation for its rows.
#[derive(Debug)]
pub(super) struct SessionTable {
    rows: MemTable,
    memory: Arc<MemoryReservation>,
}

impl SessionTable {
    pub(super) fn new(rows: MemTable, memory: MemoryReservation) -> Self {
        Self {
            rows,
            memory: Arc::new(memory),
        }
    }

    /// Makes the reservation fit what `DELETE` and `UPDATE` left.
    async fn settle(&self) {
        let mut bytes = 0;
        for partition in &self.rows.batches {
            bytes += partition
                .read()
                .await
                .iter()
                .map(RecordBatch::get_array_memory_size)
                .sum::<usize>();
        }
        self.memory.resize(bytes);
    }
}

#[async_trait]
impl TableProvider for SessionTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.rows.constraints()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.rows.get_column_default(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(state, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.schema()
            .logically_equivalent_names_and_types(&input.schema())?;
        if operation != InsertOp::Append {
            return not_impl_err!("{operation} is not supported for tables in memory");
        }
        let sink = Sink {
            target: self.rows.batches.clone(),
            schema: self.schema(),
            memory: Arc::clone(&self.memory),
        };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }

    async fn delete_from(
        &self,
        state: &dyn Session,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.rows.delete_from(state, filters).await?;
        self.settle().await;
        Ok(plan)
    }

    async fn update(
        &self,
        state: &dyn Session,
        assignments: Vec<(String, Expr)>,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.rows.update(state, assignments, filters).await?;
        self.settle().await;
        Ok(plan)
    }
}

/// Where the rows of `INSERT` go: all of them or, on an error, none.
struct Sink {
    target: Vec<PartitionData>,
    schema: SchemaRef,
    memory: Arc<MemoryReservation>,
}

#[async_trait]
impl DataSink for Sink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        _: &Arc<TaskContext>,
    ) -> Result<u64> {
        let pending = self.memory.new_empty();
        let (mut batches, mut rows) = (Vec::new(), 0);
        while let Some(batch) = data.next().await.transpose()? {
            pending.try_grow(batch.get_array_memory_size())?;
            rows += batch.num_rows() as u64;
            batches.push(batch);
        }
        if let Some(partition) = self.target.first() {
            partition.write().await.append(&mut batches);
            self.memory.grow(pending.free());
        }
        Ok(rows)
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("rows_bytes", &self.memory.size())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for Sink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("session table")
    }
}
