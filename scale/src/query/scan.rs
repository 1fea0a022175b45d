//! Reads a table of traces: rank by rank, a stretch of rows at a time, first the columns that
//! conditions are about, and of the rows that fit the others.

use super::conditions::Conditions;
use super::rank::Rank;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// Rows that are made at a time: what a query that ends early has made for nothing. Each time,
/// columns of text begin a dictionary of their own.
const STRETCH: usize = 1 << 16;
/// Rows that go on at a time.
const ROWS: usize = 8192;

/// What is read.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub table: &'static str,
    /// The columns that go on, in the order of the query.
    pub schema: SchemaRef,
    pub conditions: Conditions,
    /// Of how many rows it is enough.
    pub limit: Option<usize>,
}

/// A table of some ranks, a partition each.
pub(super) struct Scan {
    wish: Arc<Wish>,
    ranks: Vec<Arc<Rank>>,
    /// How many ranks there are, with those that do not fit.
    all: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    /// Of `all` ranks those that may fit.
    pub fn new(wish: Wish, ranks: Vec<Arc<Rank>>, all: usize) -> Scan {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(wish.schema.clone()),
            Partitioning::UnknownPartitioning(ranks.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Scan {
            wish: Arc::new(wish),
            ranks,
            all,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl Debug for Scan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("wish", &self.wish).finish_non_exhaustive()
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Wish { table, schema, conditions, limit } = self.wish.as_ref();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (ranks, all, names) = (self.ranks.len(), self.all, names.join(", "));
        write!(f, "TraceScan: table: {table}, ranks: {ranks} of {all}, columns: [{names}]")?;
        write!(f, "{conditions}")?;
        match limit {
            Some(limit) => write!(f, ", limit: {limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "TraceScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => internal_err!("a scan of traces reads no other plan"),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(rank) = self.ranks.get(partition) else {
            return internal_err!("a scan has no part {partition}");
        };
        let counter = |name| MetricBuilder::new(&self.metrics).counter(name, partition);
        let reader = Reader {
            wish: self.wish.clone(),
            rank: rank.clone(),
            next: 0,
            left: self.wish.limit.unwrap_or(usize::MAX),
            tried: counter("rows_tried"),
            made: counter("values_made"),
        };
        // Each stretch is made where waiting does no harm, and is a task of its own: one that
        // waited for its reader would keep a thread that another rank may need first.
        let stretches = stream::try_unfold(reader, |mut reader| async {
            let read = tokio::task::spawn_blocking(move || {
                let batch = reader.next();
                batch.map(|batch| batch.map(|batch| (batch, reader)))
            });
            read.await.map_err(|error| DataFusionError::External(error.into()))?
        });
        let rows = context.session_config().batch_size().min(ROWS);
        let parts = stretches.map_ok(move |batch| {
            let starts = (0..batch.num_rows()).step_by(rows);
            let part = move |start| Ok(batch.slice(start, rows.min(batch.num_rows() - start)));
            stream::iter(starts.map(part))
        });
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counted = move |batch: &RecordBatch| metrics.record_output(batch.num_rows());
        let parts = parts.try_flatten().inspect_ok(counted).boxed();
        let parts = RecordBatchStreamAdapter::new(self.wish.schema.clone(), parts);
        Ok(Box::pin(datafusion::physical_plan::coop::cooperative(parts)))
    }
}

/// Where the scan of a rank has come to.
struct Reader {
    wish: Arc<Wish>,
    rank: Arc<Rank>,
    /// The first row of the range that was not tried yet.
    next: usize,
    /// How many rows are still wanted.
    left: usize,
    /// How many rows were tried.
    tried: Count,
    /// How many values of columns were made.
    made: Count,
}

impl Reader {
    /// The next rows that fit; none behind the last.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let rank = self.rank.clone();
        let Some(rows) = rank.rows(self.wish.table) else { return self.whole() };
        let starts = &rank.model().events.starts;
        let range = self.wish.conditions.range(rows.len(), |at| starts[rows[at] as usize]);
        let rows = &rows[range];
        while self.left > 0 && self.next < rows.len() {
            let most = match self.wish.conditions.columns() {
                None => self.left.min(STRETCH),
                Some(_) => STRETCH,
            };
            let stretch = &rows[self.next..rows.len().min(self.next + most)];
            self.next += stretch.len();
            let batch = self.stretch(stretch)?;
            if batch.num_rows() > 0 {
                return Ok(Some(self.limited(batch)));
            }
        }
        Ok(None)
    }

    /// Those of some rows of events that fit.
    fn stretch(&self, rows: &[u32]) -> Result<RecordBatch> {
        let Some(columns) = self.wish.conditions.columns() else {
            let made = self.make(Some(rows), &self.wish.schema)?;
            return self.joined(rows.len(), |name| made.column_by_name(name).cloned());
        };
        let tried = self.make(Some(rows), columns)?;
        self.tried.add(rows.len());
        let fits = self.wish.conditions.fits(&tried)?;
        let fitting: Vec<u32> =
            rows.iter().zip(fits.values()).filter(|(_, fits)| *fits).map(|(row, _)| *row).collect();
        if fitting.is_empty() {
            return Ok(RecordBatch::new_empty(self.wish.schema.clone()));
        }
        let schema = &self.wish.schema;
        let is_tried = |field: &&Arc<Field>| columns.index_of(field.name()).is_ok();
        let (kept, others): (Vec<_>, Vec<_>) = schema.fields().iter().partition(is_tried);
        let kept = kept.iter().map(|field| columns.index_of(field.name()));
        let kept = tried.project(&kept.collect::<Result<Vec<_>, _>>()?)?;
        let kept = filter_record_batch(&kept, &fits)?;
        let others = Schema::new(others.into_iter().cloned().collect::<Vec<_>>());
        let others = self.make(Some(&fitting), &others)?;
        let column = |name: &str| kept.column_by_name(name).or(others.column_by_name(name));
        self.joined(fitting.len(), |name| column(name).cloned())
    }

    /// Those of the rows that fit of a table that is small, or of which no row can be made alone.
    fn whole(&mut self) -> Result<Option<RecordBatch>> {
        if self.next > 0 || self.left == 0 {
            return Ok(None);
        }
        self.next = 1;
        let conditions = &self.wish.conditions;
        let mut fields = self.wish.schema.fields().to_vec();
        if let Some(columns) = conditions.columns() {
            let more = columns.fields().iter();
            fields.extend(more.filter(|f| self.wish.schema.index_of(f.name()).is_err()).cloned());
        }
        let mut table = self.make(None, &Schema::new(fields))?;
        if let Some(columns) = conditions.columns() {
            self.tried.add(table.num_rows());
            let named = columns.fields().iter().map(|field| table.schema().index_of(field.name()));
            let named = named.collect::<Result<Vec<_>, _>>()?;
            table = filter_record_batch(&table, &conditions.fits(&table.project(&named)?)?)?;
        }
        let rows = table.num_rows();
        let batch = self.joined(rows, |name| table.column_by_name(name).cloned())?;
        Ok(Some(self.limited(batch)))
    }

    /// Columns of a table.
    fn make(&self, rows: Option<&[u32]>, columns: &Schema) -> Result<RecordBatch> {
        let wanted = |name: &str| columns.index_of(name).is_ok();
        let made = self.rank.table(self.wish.table, rows, &wanted);
        let made = made.map_err(|why| DataFusionError::External(why.into()))?;
        self.made.add(made.num_rows() * made.num_columns());
        Ok(made)
    }

    /// Columns in the order of the query. There are rows though no column is wanted.
    fn joined(
        &self,
        rows: usize,
        column: impl Fn(&str) -> Option<ArrayRef>,
    ) -> Result<RecordBatch> {
        let schema = &self.wish.schema;
        let arrays: Vec<ArrayRef> =
            schema.fields().iter().filter_map(|field| column(field.name())).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &rows)?)
    }

    fn limited(&mut self, batch: RecordBatch) -> RecordBatch {
        let batch = batch.slice(0, batch.num_rows().min(self.left));
        self.left -= batch.num_rows();
        batch
    }
}
