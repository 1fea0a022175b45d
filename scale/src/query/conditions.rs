//! The conditions of a query that a scan of traces tries itself, before it makes other columns.

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

/// Whether a scan can try a condition: it gives the same for the same row whenever it is tried, and
/// needs nothing but the row.
pub(super) fn is_tried_by_scans(condition: &Expr) -> bool {
    let needs_more = |expr: &Expr| {
        matches!(
            expr,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
        )
    };
    // What cannot be looked through is left to the engine.
    let needs_more = condition.exists(|expr| Ok(needs_more(expr))).unwrap_or(true);
    !needs_more && !condition.is_volatile()
}

/// The conditions of a scan: where in time rows may lie, and what else is asked of each.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// The first and the last `ts`.
    times: (i64, i64),
    /// What is asked of each row; none if every row fits.
    each: Option<Arc<dyn PhysicalExpr>>,
    /// The columns that `each` is about, in the order of the table.
    columns: SchemaRef,
}

impl Conditions {
    /// Of a table with a `schema`; rows are `sorted` by `ts` or not.
    ///
    /// # Errors
    ///
    /// When a condition is none of a row of this table.
    pub fn of(
        session: &dyn Session,
        schema: &SchemaRef,
        sorted: bool,
        conditions: Vec<Expr>,
    ) -> Result<Conditions, DataFusionError> {
        let mut times = (i64::MIN, i64::MAX);
        let mut each = conditions;
        // What the range says whole need not be asked of each row.
        each.retain(|condition| !sorted || !narrow(&mut times, condition));
        let named = each.iter().flat_map(Expr::column_refs);
        let mut columns: Vec<usize> =
            named.map(|column| schema.index_of(&column.name)).collect::<Result<_, _>>()?;
        columns.sort_unstable();
        columns.dedup();
        let columns = Arc::new(schema.project(&columns)?);
        let of_columns = DFSchema::try_from(columns.clone())?;
        let each = conjunction(each);
        let each = each.map(|each| session.create_physical_expr(each, &of_columns)).transpose()?;
        Ok(Conditions { times, each, columns })
    }

    /// Which of so many rows may fit, whose `ts` are in order.
    pub fn range(&self, rows: usize, ts: impl Fn(usize) -> i64) -> Range<usize> {
        let (first, last) = self.times;
        let start = partition(rows, |row| ts(row) < first);
        start..partition(rows, |row| ts(row) <= last).max(start)
    }

    /// The columns that have to be there before rows are tried; none if all rows fit.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.each.as_ref().map(|_| &self.columns)
    }

    /// Which rows fit. What is neither true nor false of a row does not hold.
    ///
    /// # Errors
    ///
    /// Those of the query, such as a division by zero.
    pub fn fits(&self, columns: &RecordBatch) -> Result<BooleanArray, DataFusionError> {
        let rows = columns.num_rows();
        let Some(each) = &self.each else { return Ok(BooleanArray::from(vec![true; rows])) };
        let fits = each.evaluate(columns)?.into_array(rows)?;
        let Some(fits) = fits.as_boolean_opt() else {
            let what = format!("the condition {each} is neither true nor false");
            return Err(DataFusionError::Plan(what));
        };
        Ok(if fits.null_count() > 0 { prep_null_mask_filter(fits) } else { fits.clone() })
    }
}

impl std::fmt::Display for Conditions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = self.times;
        match (first > i64::MIN, last < i64::MAX) {
            _ if first > last => write!(f, ", ts: never")?,
            (false, false) => {}
            (true, false) => write!(f, ", ts: {first} and later")?,
            (false, true) => write!(f, ", ts: up to {last}")?,
            (true, true) => write!(f, ", ts: {first} to {last}")?,
        }
        match &self.each {
            Some(each) => write!(f, ", conditions: {each}"),
            None => Ok(()),
        }
    }
}

/// How many of the first rows `are` something that no row behind them is.
fn partition(rows: usize, are: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = low + (high - low) / 2;
        if are(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Narrows a range by a condition that says when rows begin; tells whether it says no more.
fn narrow(times: &mut (i64, i64), condition: &Expr) -> bool {
    let (first, last) = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, time) = match (is_ts(left), is_ts(right)) {
                (true, false) => (Some(*op), time(right)),
                // 5 < ts is ts > 5.
                (false, true) => (op.swap(), time(left)),
                _ => return false,
            };
            let Some(time) = time else { return false };
            // No `ts` is before the first or behind the last that there can be.
            match op {
                Some(Operator::Eq) => (Some(time), Some(time)),
                Some(Operator::GtEq) => (Some(time), Some(i64::MAX)),
                Some(Operator::LtEq) => (Some(i64::MIN), Some(time)),
                Some(Operator::Gt) => (time.checked_add(1), Some(i64::MAX)),
                Some(Operator::Lt) => (Some(i64::MIN), time.checked_sub(1)),
                _ => return false,
            }
        }
        Expr::Between(between) if !between.negated && is_ts(&between.expr) => {
            let ends = (time(&between.low), time(&between.high));
            let (Some(_), Some(_)) = ends else { return false };
            ends
        }
        _ => return false,
    };
    let (Some(first), Some(last)) = (first, last) else {
        *times = (i64::MAX, i64::MIN);
        return true;
    };
    *times = (times.0.max(first), times.1.min(last));
    true
}

fn is_ts(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == "ts")
}

fn time(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(time), _) => *time,
        _ => None,
    }
}
