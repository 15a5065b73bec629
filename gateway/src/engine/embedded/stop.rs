//! Stopping a running plan within a second, whatever it is doing.
//!
//! A task ends where it pauses. DataFusion's sources pause; its joins make many rows from few, for
//! minutes, and do not. Owns the signal, and what is put into a plan so that joins pause, and look
//! at the signal while they compare rows. Must not know statements.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// Tells a plan to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Gives the signal when it is dropped.
#[derive(Debug)]
pub(super) struct StopOnDrop(Stop);

impl Stop {
    /// What the waiting side holds.
    pub(super) fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }

    /// A plan that does the same, and stops on the signal.
    pub(super) fn watch(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let (node, changed) = match self.watch_filter(&node)? {
                Some(join) => (join, true),
                None => (node, false),
            };
            if node.children().len() > 1 || node.is::<UnnestExec>() {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as _));
            }
            Ok(Transformed::new_transformed(node, changed))
        })
        .data()
    }

    fn watch_filter(
        &self,
        node: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
            return Ok(None);
        };
        let Some(filter) = join.filter() else {
            return Ok(None);
        };
        let watched = Watched {
            inner: Arc::clone(filter.expression()),
            stop: self.clone(),
        };
        let columns = filter.column_indices().to_vec();
        let filter = JoinFilter::new(Arc::new(watched), columns, Arc::clone(filter.schema()));
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        let join = NestedLoopJoinExecBuilder::new(left, right, *join.join_type())
            .with_projection_ref(join.projection().clone())
            .with_filter(Some(filter))
            .build()?;
        Ok(Some(Arc::new(join)))
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// An expression that fails once the signal was given.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn PhysicalExpr>,
    stop: Stop,
}

impl PhysicalExpr for Watched {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.stop.0.load(Ordering::Relaxed) {
            return exec_err!("the statement was stopped");
        }
        self.inner.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(inner) => Ok(Arc::new(Self {
                inner,
                stop: self.stop.clone(),
            })),
            None => Ok(self),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
