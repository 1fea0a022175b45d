//! The tables of traces, made when a query reads them, of the columns that it reads.

use super::of_query;
use crate::{Failure, named, tables};
use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::{SessionContext, col};
use futures::stream::{self, StreamExt, TryStreamExt};
use kymograph_analysis::job::{Job, Member, damage, list};
use kymograph_analysis::{Model, Reading, run};
use kymograph_converters::trace::{ProcessId, Trace};
use kymograph_converters::{folder, format};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that go on at a time.
const ROWS: usize = 8192;

/// A rank in memory.
#[derive(Debug)]
struct Rank {
    trace: Arc<Trace>,
    process: Option<ProcessId>,
    rank: i64,
}

impl Rank {
    fn table(
        &self,
        name: &str,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<RecordBatch, DataFusionError> {
        let model = Model::new(&self.trace, self.process, self.rank, Reading::Exact);
        tables::one(&model, name, wanted).map_err(|why| DataFusionError::External(why.into()))
    }
}

/// Reads traces and registers their tables; says what is not in them.
pub(super) fn register(context: &SessionContext, words: &[String]) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for word in words {
        paths.extend(folder::traces(word).map_err(Failure)?);
    }
    let (ranks, left_out) = read(&paths)?;
    let nothing = Trace::default();
    let nothing = Model::new(&nothing, None, 0, Reading::Exact);
    for name in tables::NAMES {
        let schema = tables::one(&nothing, name, &|_| true)?.schema();
        let table = Table { name, schema, ranks: ranks.clone() };
        context.register_table(name, Arc::new(table)).map_err(|error| of_query(&error))?;
    }
    Ok(left_out)
}

fn read(paths: &[PathBuf]) -> Result<(Vec<Arc<Rank>>, Vec<String>), Failure> {
    let (mut job, mut left_out) = (Job::default(), Vec::new());
    let mut ranks: BTreeMap<i64, (&Path, Arc<Rank>)> = BTreeMap::new();
    for (number, (path, trace)) in paths.iter().zip(read_all(paths)?).enumerate() {
        left_out.extend(damage(&trace).map(|what| format!("{}: {what}", path.display())));
        let trace = Arc::new(trace);
        for (process, rank) in run::ranks(&trace, number as i64) {
            let origin = Model::new(&trace, process, rank, Reading::Exact).origin;
            let member = Member::of(&trace, rank, origin);
            job.check(&member).map_err(|why| named(path, &why))?;
            job.learn(&member);
            let new = Arc::new(Rank { trace: trace.clone(), process, rank });
            if let Some((other, _)) = ranks.insert(rank, (path, new)) {
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
fn read_all(paths: &[PathBuf]) -> Result<Vec<Trace>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Result<Trace, Failure>>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(number) else { return };
            let file = std::fs::File::open(path).map_err(|error| named(path, &error));
            let trace =
                file.and_then(|file| format::read(file, None).map_err(|error| named(path, &error)));
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(number, trace);
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

/// A table of all ranks.
#[derive(Debug)]
struct Table {
    name: &'static str,
    schema: SchemaRef,
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
        let by_rank = |filter: &&Expr| match is_of_rank(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(by_rank).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        // In the order of the schema here; the plan puts columns into the order of the query.
        let mut read: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let asked = read.clone();
        read.sort_unstable();
        read.dedup();
        let schema: SchemaRef = Arc::new(self.schema.project(&read)?);
        let order = asked.iter().map(|column| read.binary_search(column).unwrap_or_default());
        let order: Vec<usize> = order.collect();
        let part = |rank: &Arc<Rank>| -> Arc<dyn PartitionStream> {
            Arc::new(Part { name: self.name, schema: schema.clone(), rank: rank.clone() })
        };
        let mut parts = Vec::new();
        for rank in &self.ranks {
            if may_fit(session, filters, rank.rank)? {
                parts.push(part(rank));
            }
        }
        let plan =
            StreamingTableExec::try_new(schema.clone(), parts, Some(&order), [], false, limit)?;
        Ok(Arc::new(plan))
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

/// The rows of a rank.
#[derive(Debug)]
struct Part {
    name: &'static str,
    /// With the columns that are read.
    schema: SchemaRef,
    rank: Arc<Rank>,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (name, schema, rank) = (self.name, self.schema.clone(), self.rank.clone());
        let wanted = self.schema.clone();
        let made = async move {
            let make = move || rank.table(name, &|column| wanted.index_of(column).is_ok());
            let made = tokio::task::spawn_blocking(make).await;
            let batch = made.map_err(|error| DataFusionError::External(error.into()))??;
            let starts = (0..batch.num_rows()).step_by(ROWS);
            let slice =
                move |start: usize| Ok(batch.slice(start, ROWS.min(batch.num_rows() - start)));
            Ok::<_, DataFusionError>(stream::iter(starts.map(slice)))
        };
        let rows = stream::once(made).try_flatten().boxed();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}
