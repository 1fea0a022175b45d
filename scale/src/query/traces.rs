//! The tables of traces, made when a query reads them: the columns that it reads, of the rows that
//! fit.

use super::conditions::{Conditions, is_tried_by_scans};
use super::of_query;
use super::rank::Rank;
use super::scan::{Scan, Wish};
use crate::{Failure, named, tables};
use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionContext, col};
use kymograph_analysis::job::{Job, Member, damage, list};
use kymograph_analysis::run;
use kymograph_converters::trace::Trace;
use kymograph_converters::{folder, format};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reads traces and registers their tables; says what is not in them.
pub(super) fn register(context: &SessionContext, words: &[String]) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for word in words {
        paths.extend(folder::traces(word).map_err(Failure)?);
    }
    let (ranks, left_out) = read(&paths)?;
    let nothing = Rank::new(Arc::new(Trace::default()), None, 0);
    for name in tables::NAMES {
        let schema = nothing.table(name, None, &|_| true)?.schema();
        let is_of_events = nothing.rows(name).is_some();
        let table = Table { name, schema, is_of_events, ranks: ranks.clone() };
        context.register_table(name, Arc::new(table)).map_err(|error| of_query(&error))?;
    }
    Ok(left_out)
}

/// What a file has: its ranks, and a sentence if something of it is not there.
type Read = (Vec<Rank>, Option<String>);

fn read(paths: &[PathBuf]) -> Result<(Vec<Arc<Rank>>, Vec<String>), Failure> {
    let (mut job, mut left_out) = (Job::default(), Vec::new());
    let mut ranks: BTreeMap<i64, (&Path, Arc<Rank>)> = BTreeMap::new();
    for (path, (of_file, what)) in paths.iter().zip(read_all(paths)?) {
        left_out.extend(what.map(|what| format!("{}: {what}", path.display())));
        for new in of_file {
            let (rank, origin) = (new.rank, new.model().origin);
            let member = Member::of(new.trace(), rank, origin);
            job.check(&member).map_err(|why| named(path, &why))?;
            job.learn(&member);
            if let Some((other, _)) = ranks.insert(rank, (path, Arc::new(new))) {
                let (one, other) = (path.display(), other.display());
                return Err(Failure(format!("{other} and {one} are both rank {rank}")));
            }
        }
    }
    let missing = job.missing(&ranks.keys().copied().collect());
    if !missing.is_empty() {
        left_out.push(format!("{} missing", list(&missing)));
    }
    Ok((ranks.into_values().map(|(_, rank)| rank).collect(), left_out))
}

/// Reads traces on all processors.
fn read_all(paths: &[PathBuf]) -> Result<Vec<Read>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Result<Read, Failure>>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(number) else { return };
            let read = read_one(path, number as i64);
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(number, read);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..cores.min(paths.len()) {
            scope.spawn(work);
        }
        work();
    });
    done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).into_values().collect()
}

/// Reads a trace, which is rank `number` if it does not say.
fn read_one(path: &Path, number: i64) -> Result<Read, Failure> {
    let file = std::fs::File::open(path).map_err(|error| named(path, &error))?;
    let trace = Arc::new(format::read(file, None).map_err(|error| named(path, &error))?);
    let ranks = run::ranks(&trace, number).into_iter();
    let ranks = ranks.map(|(process, rank)| Rank::new(trace.clone(), process, rank)).collect();
    Ok((ranks, damage(&trace)))
}

/// A table of all ranks.
#[derive(Debug)]
struct Table {
    name: &'static str,
    schema: SchemaRef,
    /// Then any of its rows can be made, and they are in the order of `ts`.
    is_of_events: bool,
    ranks: Vec<Arc<Rank>>,
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        let tried = |filter: &&Expr| match is_tried_by_scans(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(tried).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema.clone(),
        };
        let mut ranks = Vec::new();
        for rank in &self.ranks {
            if may_fit(session, filters, rank.rank)? {
                ranks.push(rank.clone());
            }
        }
        // All rows of a rank are of that rank.
        let others = filters.iter().filter(|filter| !is_of_rank(filter)).cloned().collect();
        let conditions = Conditions::of(session, &self.schema, self.is_of_events, others)?;
        let wish = Wish { table: self.name, schema, conditions, limit };
        Ok(Arc::new(Scan::new(wish, ranks, self.ranks.len())))
    }
}

/// Whether a condition is about the rank alone.
fn is_of_rank(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.name == "rank")
}

/// Whether rows of a rank may fit: the conditions are tried on its number.
fn may_fit(session: &dyn Session, filters: &[Expr], rank: i64) -> Result<bool, DataFusionError> {
    let schema = Arc::new(Schema::new(vec![Field::new("rank", DataType::Int64, false)]));
    let of_rank = DFSchema::try_from(schema.clone())?;
    let row = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![rank]))])?;
    for filter in filters.iter().filter(|filter| is_of_rank(filter)) {
        let named = |expr: Expr| match expr {
            Expr::Column(_) => Ok(Transformed::yes(col("rank"))),
            expr => Ok(Transformed::no(expr)),
        };
        let filter = filter.clone().transform(named)?.data;
        let tried = session.create_physical_expr(filter, &of_rank)?.evaluate(&row)?;
        let tried = tried.into_array(1)?;
        let fits = tried.as_boolean_opt().is_none_or(|fits| fits.is_valid(0) && fits.value(0));
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}
