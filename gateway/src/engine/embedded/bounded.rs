//! Functions that make much from little, such as `repeat('x', 2000000000)`, under the memory limit.
//!
//! DataFusion's memory pool knows what operators keep, not what expressions make, and an allocation
//! that fails ends the process. Owns the list of such functions with estimates of what a call would
//! make, and the batch size at which large constants of a statement stay small when they are
//! repeated row by row. Must not know statements.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionState;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};

/// Puts the bounded functions in the place of DataFusion's. A call may make `limit` bytes.
pub(super) fn register(state: &mut SessionState, limit: usize) -> Result<()> {
    for (name, estimate) in FUNCTIONS {
        let Some(function) = state.scalar_functions().get(name) else {
            continue;
        };
        let inner = Arc::clone(function.inner());
        let bounded = Bounded {
            inner,
            estimate,
            limit: limit as u128,
        };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(bounded)))?;
    }
    Ok(())
}

/// The rows that batches of `plan` may have so that its largest constant, once for each row, stays
/// within `limit` bytes.
pub(super) fn batch_size(plan: &LogicalPlan, usual: usize, limit: usize) -> Result<usize> {
    let mut largest = 1;
    plan.apply_with_subqueries(|node| {
        // There each constant stands for itself.
        if !matches!(node, LogicalPlan::Values(_)) {
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    if let Expr::Literal(value, _) = part {
                        largest = largest.max(value.size());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(usual.min(limit / largest).max(1))
}

/// How many bytes a call makes; `None` for arguments that it does not understand.
type Estimate = fn(&Call<'_>) -> Option<u128>;

const FUNCTIONS: [(&str, Estimate); 8] = [
    ("array_repeat", |call| {
        call.sum(|row| Some(call.size(0, row)? * call.count(1, row)?))
    }),
    ("array_resize", |call| {
        call.sum(|row| Some(call.filler(row)? * call.count(1, row)?))
    }),
    ("generate_series", |call| call.series()),
    ("lpad", |call| {
        call.sum(|row| Some(WIDEST_CHARACTER * call.count(1, row)?))
    }),
    ("range", |call| call.series()),
    ("repeat", |call| {
        call.sum(|row| Some(call.size(0, row)? * call.count(1, row)?))
    }),
    ("replace", |call| {
        call.sum(|row| Some(call.size(0, row)? / call.size(1, row)?.max(1) * call.size(2, row)?))
    }),
    ("rpad", |call| {
        call.sum(|row| Some(WIDEST_CHARACTER * call.count(1, row)?))
    }),
];

const WIDEST_CHARACTER: u128 = 4;
const INTEGER: u128 = 8;
const DAY: i128 = 86_400_000_000_000;

/// The arguments of a call: one row of each constant, all rows of the others.
struct Call<'a> {
    arguments: Vec<(ArrayRef, bool)>,
    given: &'a ScalarFunctionArgs,
}

impl<'a> Call<'a> {
    fn new(given: &'a ScalarFunctionArgs) -> Result<Self> {
        let array = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
            ColumnarValue::Scalar(value) => Ok((value.to_array()?, true)),
        };
        let arguments = given.args.iter().map(array).collect::<Result<_>>()?;
        Ok(Self { arguments, given })
    }

    fn sum(&self, row: impl Fn(usize) -> Option<u128>) -> Option<u128> {
        // Of constants alone a constant is made.
        let constant = self.arguments.iter().all(|(_, constant)| *constant);
        let rows = if constant { 1 } else { self.given.number_rows };
        (0..rows).try_fold(0, |sum: u128, index| Some(sum.saturating_add(row(index)?)))
    }

    fn argument(&self, index: usize, row: usize) -> Option<(&ArrayRef, usize)> {
        let (array, constant) = self.arguments.get(index)?;
        Some((array, if *constant { 0 } else { row }))
    }

    /// Bytes of a value, null having none.
    fn size(&self, index: usize, row: usize) -> Option<u128> {
        let (array, row) = self.argument(index, row)?;
        if array.is_null(row) {
            return Some(0);
        }
        Some(match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).len() as u128,
            DataType::LargeUtf8 => array.as_string::<i64>().value(row).len() as u128,
            DataType::Utf8View => array.as_string_view().value(row).len() as u128,
            _ => array.get_array_memory_size() as u128 / array.len().max(1) as u128,
        })
    }

    /// How often, as an argument says.
    fn count(&self, index: usize, row: usize) -> Option<u128> {
        let number = self.integer(index, row)?.unwrap_or_default();
        Some(u128::try_from(number).unwrap_or_default())
    }

    /// A whole number, or null. The outer `None` is for other types.
    fn integer(&self, index: usize, row: usize) -> Option<Option<i128>> {
        let (array, row) = self.argument(index, row)?;
        if array.is_null(row) {
            return Some(None);
        }
        let value = ScalarValue::try_from_array(array, row).ok()?;
        match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => Some(number.map(i128::from)),
            _ => None,
        }
    }

    /// Bytes of what `array_resize` fills with.
    fn filler(&self, row: usize) -> Option<u128> {
        if self.arguments.len() < 3 {
            Some(INTEGER)
        } else {
            self.size(2, row)
        }
    }

    fn series(&self) -> Option<u128> {
        self.sum(|row| Some(INTEGER * self.steps(row)?))
    }

    /// The number of values of a series.
    fn steps(&self, row: usize) -> Option<u128> {
        let (start, stop) = match self.arguments.len() {
            1 => (Some(0), self.integer(0, row)?),
            _ => (self.integer(0, row)?, self.integer(1, row)?),
        };
        let (Some(start), Some(stop)) = (start, stop) else {
            return Some(0);
        };
        let (unit, step) = match self.arguments.get(2) {
            None => (1, 1),
            Some((array, _)) if matches!(array.data_type(), DataType::Interval(_)) => {
                self.interval(row)?
            }
            Some(_) => (1, self.integer(2, row)?.unwrap_or_default()),
        };
        let forward = (stop - start).signum() == step.signum();
        let span = (stop - start).unsigned_abs().saturating_mul(unit);
        Some(if step == 0 || !forward {
            1
        } else {
            span / step.unsigned_abs() + 1
        })
    }

    /// The nanoseconds of the bounds' unit, and of the step.
    fn interval(&self, row: usize) -> Option<(u128, i128)> {
        let unit = match self.arguments.first()?.0.data_type() {
            DataType::Date32 => DAY.unsigned_abs(),
            _ => 1,
        };
        let (array, row) = self.argument(2, row)?;
        let steps = array.as_primitive_opt::<IntervalMonthDayNanoType>()?;
        let (months, days, nanos) = IntervalMonthDayNanoType::to_parts(steps.value(row));
        let days = i128::from(months) * 28 + i128::from(days);
        Some((unit, days * DAY + i128::from(nanos)))
    }
}

/// A function that refuses calls that would make too much.
#[derive(Debug)]
struct Bounded {
    inner: Arc<dyn ScalarUDFImpl>,
    estimate: Estimate,
    limit: u128,
}

impl ScalarUDFImpl for Bounded {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = (self.estimate)(&Call::new(&args)?).unwrap_or_default();
        if bytes > self.limit {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} would make about {bytes} bytes of {} rows at once, of {} at most",
                self.name(),
                args.number_rows,
                self.limit
            )));
        }
        self.inner.invoke_with_args(args)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.preimage(args, literal, info)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(input)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
