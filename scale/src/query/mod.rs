//! SQL over data sets and traces: DataFusion, with our tables, views and functions.
//!
//! * [`dataset`]: the tables of a data set, as Parquet files that are pruned by their statistics.
//! * [`traces`]: the same tables of traces where they lie. [`rank`] keeps what is derived from a
//!   trace, [`conditions`] are those that a [`scan`] tries itself, before it makes other columns.
//! * [`views`]: what queries often begin with.
//! * [`yields`]: has joins pause, so that a query can be ended.
//! * [`functions`]: what SQL does not have: unions of intervals, classes of kernels, bandwidths.
//! * [`output`]: what becomes of the answer, batch by batch.
//! * [`statements`], [`contents`], [`completion`]: what a shell has to know.

pub mod completion;
mod conditions;
pub mod contents;
mod dataset;
mod functions;
pub mod output;
mod rank;
mod scan;
pub mod statements;
mod traces;
mod views;
mod yields;

use crate::dataset::Dataset;
use crate::store::{self, Store};
use crate::{Failure, layout};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::path::Path;
use std::sync::Arc;
use yields::JoinsYield;

/// The longest query: a condition of as many parts needs as deep a stack.
const LONGEST: usize = 1 << 16;
/// Bytes of stack, of which only those exist that are used.
const STACK: usize = 256 << 20;

/// Threads that carry out queries, as many as there are processors.
#[derive(Debug)]
pub struct Engine(tokio::runtime::Runtime);

impl Engine {
    /// Starts them.
    ///
    /// # Errors
    ///
    /// When there are no threads to be had.
    pub fn new() -> Result<Engine, Failure> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        // Time and connections are for object storage.
        let runtime = runtime.thread_stack_size(STACK).enable_all().build();
        Ok(Engine(runtime.map_err(no_threads)?))
    }

    /// Carries out what is asked.
    ///
    /// # Errors
    ///
    /// When there are no threads to be had.
    pub fn carry_out<T: Send>(&self, work: impl Future<Output = T> + Send) -> Result<T, Failure> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let thread = thread.spawn_scoped(scope, || self.0.block_on(work));
            let ended = thread.map_err(no_threads)?.join();
            ended.map_err(|_| Failure("the query failed: please report it".to_owned()))
        })
    }
}

fn no_threads(error: std::io::Error) -> Failure {
    Failure(format!("there are no threads: {error}"))
}

/// Carries out what is asked, on threads of its own.
///
/// # Errors
///
/// When there are no threads to be had.
pub fn carry_out<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, Failure> {
    Engine::new()?.carry_out(work)
}

/// What can be asked.
pub struct Database {
    context: SessionContext,
    /// Sentences about what is not in it.
    pub left_out: Vec<String>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("left_out", &self.left_out).finish_non_exhaustive()
    }
}

/// How a query is carried out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Bytes of memory, from which on sorting, grouping and joining go to disk.
    pub memory: Option<usize>,
    /// Whether data sets of which ranks are missing are taken, too.
    pub partial: bool,
}

impl Database {
    /// Opens one data set, or traces: files, folders and patterns.
    ///
    /// # Errors
    ///
    /// When a target cannot be read, or the targets are not one job.
    pub async fn open(targets: &[String], limits: Limits) -> Result<Database, Failure> {
        let is_set = |word: &String| {
            store::scheme(word).is_some() || Path::new(word).join(layout::HEADER).is_file()
        };
        let sets = targets.iter().filter(|word| is_set(word)).count();
        let context = context(limits)?;
        functions::register(&context);
        let left_out = match (sets, targets) {
            (_, []) => return Err(Failure("say a data set or traces".to_owned())),
            (0, _) => traces::register(&context, targets)?,
            (1, [set]) => {
                let set = Dataset::open(Store::of(set)?)?;
                let wrong = set.problems().sentences();
                if !wrong.is_empty() && !limits.partial {
                    let wrong = wrong.join("; ");
                    return Err(Failure(format!(
                        "{wrong}; --partial goes on with the ranks that are there"
                    )));
                }
                dataset::register(&context, &set).await?;
                wrong
            }
            _ => return Err(Failure("a data set is asked alone".to_owned())),
        };
        views::register(&context).await.map_err(|error| of_query(&error))?;
        Ok(Database { context, left_out })
    }

    /// The answer, as it comes.
    ///
    /// # Errors
    ///
    /// When the query is none, or is about what is not there.
    pub async fn ask(&self, sql: &str) -> Result<SendableRecordBatchStream, Failure> {
        let frame = self.frame(sql).await?;
        frame.execute_stream().await.map_err(|error| of_query(&error))
    }

    /// How the query would be carried out, as text.
    ///
    /// # Errors
    ///
    /// Like those of [`Database::ask`].
    pub async fn explain(&self, sql: &str) -> Result<String, Failure> {
        let frame = self.frame(sql).await?;
        let plan = frame.create_physical_plan().await.map_err(|error| of_query(&error))?;
        Ok(displayable(plan.as_ref()).indent(false).to_string())
    }

    async fn frame(&self, sql: &str) -> Result<datafusion::dataframe::DataFrame, Failure> {
        if sql.len() > LONGEST {
            let length = sql.len();
            return Err(Failure(format!("the query has {length} bytes; it may have {LONGEST}")));
        }
        // Nothing is changed: no files are written by COPY, and no tables made.
        let options = SQLOptions::new();
        let options = options.with_allow_ddl(false).with_allow_dml(false);
        let options = options.with_allow_statements(false);
        let frame = self.context.sql_with_options(sql, options).await;
        frame.map_err(|error| of_query(&error))
    }
}

fn context(limits: Limits) -> Result<SessionContext, Failure> {
    let mut config = SessionConfig::new().with_information_schema(true);
    let options = config.options_mut();
    // Rows that cannot fit are found by what is stored of each file and row group.
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = limits.memory {
        // Hash joins do not spill.
        options.optimizer.prefer_hash_join = false;
        // What each sort keeps for the time when it reads back what it has spilled.
        let each = bytes / (16 * options.execution.target_partitions.max(1));
        let most = options.execution.sort_spill_reservation_bytes;
        options.execution.sort_spill_reservation_bytes = each.min(most);
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    }
    let runtime = runtime.build_arc().map_err(|error| of_query(&error))?;
    let state = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime);
    let state = state.with_default_features().with_physical_optimizer_rule(Arc::new(JoinsYield));
    Ok(SessionContext::new_with_state(state.build()))
}

/// What DataFusion has to say about a query, without the names of its own layers.
pub fn of_query(error: &DataFusionError) -> Failure {
    #[cfg(feature = "storage")]
    if let Some(Failure(why)) = crate::storage::found(error) {
        return Failure(format!("the query failed: {why}"));
    }
    let root = error.find_root();
    let text = root.strip_backtrace();
    match root {
        DataFusionError::ResourcesExhausted(_) => Failure(format!(
            "there is not enough memory for this query: a larger --memory may do ({text})"
        )),
        _ => Failure(format!("the query failed: {text}")),
    }
}
