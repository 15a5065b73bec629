//! The schema `tpch`: the eight tables of TPC-H, made while they are read.
//!
//! Owns the tables and their plan node. Nothing is kept but the pool of text from which comments
//! are cut. That pool is smaller than the one of the reference generator, so that the first row
//! comes at once and memory stays small; values of comment columns therefore differ from it, and
//! all other values are the same. Must not know sessions.

use std::fmt;
use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::stream;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// Bytes of text from which comments are cut; the reference generator has 300 MiB.
const TEXT_BYTES: i32 = 16 << 20;

/// Fewer rows than this are not worth another partition.
const ROWS_PER_PARTITION: i64 = 20_000;

/// Orders have one to seven items.
const ITEMS_PER_ORDER: i64 = 4;

/// The generators borrow it for the life of the process, whatever engine they work for.
static TEXT: LazyLock<TextPool> =
    LazyLock::new(|| TextPool::new(TEXT_BYTES, Distributions::static_default()));

/// The tables with their names.
pub(super) fn tables(
    scale_factor: f64,
) -> impl Iterator<Item = (&'static str, Arc<dyn TableProvider>)> {
    Table::ALL.into_iter().map(move |table| {
        let provider: Arc<dyn TableProvider> = Arc::new(Generated {
            table,
            scale_factor,
        });
        (table.name(), provider)
    })
}

#[derive(Clone, Copy, Debug)]
enum Table {
    Customer,
    LineItem,
    Nation,
    Orders,
    Part,
    PartSupp,
    Region,
    Supplier,
}

type Rows = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

/// One of `count` equal parts of a table.
#[derive(Clone, Copy, Debug)]
struct Share {
    scale_factor: f64,
    part: i32,
    count: i32,
}

impl Table {
    const ALL: [Self; 8] = [
        Self::Customer,
        Self::LineItem,
        Self::Nation,
        Self::Orders,
        Self::Part,
        Self::PartSupp,
        Self::Region,
        Self::Supplier,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::LineItem => "lineitem",
            Self::Nation => "nation",
            Self::Orders => "orders",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Region => "region",
            Self::Supplier => "supplier",
        }
    }

    fn schema(self) -> SchemaRef {
        match self {
            Self::Customer => CustomerArrow::schema_ref(),
            Self::LineItem => LineItemArrow::schema_ref(),
            Self::Nation => NationArrow::schema_ref(),
            Self::Orders => OrderArrow::schema_ref(),
            Self::Part => PartArrow::schema_ref(),
            Self::PartSupp => PartSuppArrow::schema_ref(),
            Self::Region => RegionArrow::schema_ref(),
            Self::Supplier => SupplierArrow::schema_ref(),
        }
    }

    /// How many rows a share has, which is exact but for line items.
    fn rows(self, share: Share) -> Precision<usize> {
        let Share {
            scale_factor,
            part,
            count,
        } = share;
        let orders = OrderGenerator::calculate_row_count(scale_factor, part, count);
        let rows = match self {
            Self::Customer => CustomerGenerator::calculate_row_count(scale_factor, part, count),
            Self::LineItem => orders * ITEMS_PER_ORDER,
            Self::Nation => 25,
            Self::Orders => orders,
            Self::Part => PartGenerator::calculate_row_count(scale_factor, part, count),
            Self::PartSupp => PartSuppGenerator::calculate_row_count(scale_factor, part, count) * 4,
            Self::Region => 5,
            Self::Supplier => SupplierGenerator::calculate_row_count(scale_factor, part, count),
        };
        let rows = usize::try_from(rows).unwrap_or_default();
        match self {
            Self::LineItem => Precision::Inexact(rows),
            _ => Precision::Exact(rows),
        }
    }

    fn generate(self, share: Share, batch: usize) -> Rows {
        let Share {
            scale_factor: sf,
            part,
            count,
        } = share;
        let words = Distributions::static_default();
        macro_rules! rows {
            ($arrow:ident, $generator:ident) => {
                Box::new(
                    $arrow::new($generator::new_with_distributions_and_text_pool(
                        sf, part, count, words, &TEXT,
                    ))
                    .with_batch_size(batch),
                )
            };
        }
        match self {
            Self::Customer => rows!(CustomerArrow, CustomerGenerator),
            Self::LineItem => rows!(LineItemArrow, LineItemGenerator),
            Self::Orders => rows!(OrderArrow, OrderGenerator),
            Self::Part => rows!(PartArrow, PartGenerator),
            Self::Supplier => rows!(SupplierArrow, SupplierGenerator),
            Self::Nation => {
                let new = NationGenerator::new_with_distributions_and_text_pool;
                Box::new(NationArrow::new(new(words, &TEXT)).with_batch_size(batch))
            }
            Self::Region => {
                let new = RegionGenerator::new_with_distributions_and_text_pool;
                Box::new(RegionArrow::new(new(words, &TEXT)).with_batch_size(batch))
            }
            Self::PartSupp => {
                let generator = PartSuppGenerator::new_with_text_pool(sf, part, count, &TEXT);
                Box::new(PartSuppArrow::new(generator).with_batch_size(batch))
            }
        }
    }
}

/// A table of the schema.
#[derive(Debug)]
struct Generated {
    table: Table,
    scale_factor: f64,
}

#[async_trait]
impl TableProvider for Generated {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = state.config().target_partitions();
        let scan = Scan::new(self.table, self.scale_factor, projection, partitions)?;
        Ok(Arc::new(scan))
    }
}

/// Reads a table, each partition a share of it in the order of its key.
#[derive(Debug)]
struct Scan {
    table: Table,
    scale_factor: f64,
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
}

impl Scan {
    fn new(
        table: Table,
        scale_factor: f64,
        projection: Option<&Vec<usize>>,
        partitions: usize,
    ) -> Result<Self> {
        let whole = Share {
            scale_factor,
            part: 1,
            count: 1,
        };
        let rows = table.rows(whole).get_value().copied().unwrap_or_default() as i64;
        let worth = usize::try_from(rows / ROWS_PER_PARTITION).unwrap_or_default();
        let partitions = partitions.min(worth).max(1);
        let schema = match projection {
            Some(columns) => Arc::new(table.schema().project(columns)?),
            None => table.schema(),
        };
        // The key is the first column.
        let key = match projection {
            Some(columns) => columns.iter().position(|column| *column == 0),
            None => Some(0),
        };
        let order = key.map(|index| {
            let column: Arc<dyn PhysicalExpr> =
                Arc::new(Column::new(schema.field(index).name(), index));
            [PhysicalSortExpr::new_default(column)]
        });
        let equivalences = EquivalenceProperties::new_with_orderings(schema, order);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let projection = projection.cloned();
        Ok(Self {
            table,
            scale_factor,
            projection,
            properties: Arc::new(properties),
        })
    }

    fn share(&self, partition: usize) -> Share {
        let count = self.properties.partitioning.partition_count();
        Share {
            scale_factor: self.scale_factor,
            part: i32::try_from(partition + 1).unwrap_or(i32::MAX),
            count: i32::try_from(count).unwrap_or(i32::MAX),
        }
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "TpchScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch = context.session_config().batch_size();
        let (table, share) = (self.table, self.share(partition));
        let projection = self.projection.clone();
        // Generators skip to their share when they are made, so that waits for the first poll.
        let mut rows = None;
        let batches = stream::iter(std::iter::from_fn(move || {
            let next = rows
                .get_or_insert_with(|| table.generate(share, batch))
                .next()?;
            Some(match &projection {
                Some(columns) => next
                    .and_then(|batch| batch.project(columns))
                    .map_err(Into::into),
                None => next.map_err(Into::into),
            })
        }));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let share = match args.partition() {
            Some(partition) => self.share(partition),
            None => Share {
                scale_factor: self.scale_factor,
                part: 1,
                count: 1,
            },
        };
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = self.table.rows(share);
        Ok(Arc::new(statistics))
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.properties.partitioning.partition_count();
        let table = self.table.name();
        write!(
            f,
            "TpchScan: table={table}, scale_factor={}, partitions={partitions}",
            self.scale_factor
        )
    }
}
