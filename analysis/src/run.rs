//! A metric over the ranks of a job.

use kymograph_converters::order::Order as _;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use kymograph_converters::trace::{ProcessId, Trace};

use crate::compat::hta;
use crate::{Error, Metric, Model, Options, Part, Reading};

/// The ranks that a trace has: processes of several, or all of it. Where nothing tells, the
/// rank is `otherwise`.
pub fn ranks(trace: &Trace, otherwise: i64) -> Vec<(Option<ProcessId>, i64)> {
    let processes = trace.processes.iter();
    let own = processes.filter_map(|(id, _)| Some((Some(id), own_rank(trace, id)?)));
    let mut own: Vec<_> = own.collect();
    own.order_by_key(|(_, rank)| *rank);
    match own.as_slice() {
        [] => {
            let job = kymograph_converters::trace::Job::of(trace);
            vec![(None, job.rank.unwrap_or(otherwise))]
        }
        [(_, rank)] => vec![(None, *rank)],
        _ => own,
    }
}

/// The rank that a process says it has.
fn own_rank(trace: &Trace, process: ProcessId) -> Option<i64> {
    let pid = trace.processes[process].pid;
    let own = trace.strings.find(&format!("kymograph.{pid}.rank")).is_some();
    if own { trace.rank(process) } else { None }
}

/// What metrics give for one rank of a trace, in their order. Each is computed when it is asked for.
pub fn of_process<'a>(
    metrics: &'a [&Metric],
    trace: &'a Trace,
    process: Option<ProcessId>,
    rank: i64,
    options: &'a Options,
) -> impl Iterator<Item = Result<Part, Error>> + 'a {
    let mut model = Model::new(trace, process, rank, options.reading);
    model.restrict(options);
    metrics.iter().map(move |metric| of_rank(metric, &model, options))
}

/// What a metric gives for one rank.
///
/// # Errors
///
/// Those of the metric.
pub fn of_rank(metric: &Metric, model: &Model<'_>, options: &Options) -> Result<Part, Error> {
    let batch = (metric.of_trace)(model, options)?;
    Ok(Part { rank: model.rank, origin: model.origin, batch })
}

/// What a metric gives for all ranks, from what it gave for each.
///
/// # Errors
///
/// Those of the metric; and [`Error::Nothing`] when there are no parts.
pub fn over_ranks(
    metric: &Metric,
    mut parts: Vec<Part>,
    options: &Options,
) -> Result<RecordBatch, Error> {
    let Some(origin) = parts.iter().map(|part| part.origin).min() else {
        return Err(Error::Nothing("there is no trace to analyze".to_owned()));
    };
    parts.order_by_key(|part| part.rank);
    for part in &mut parts {
        part.batch = since(&part.batch, origin)?;
    }
    let batch = (metric.over_ranks)(metric, &parts, options)?;
    match options.reading {
        Reading::Exact => Ok(batch),
        Reading::Hta(_) => hta::table(&batch, metric.columns),
    }
}

/// Moments since the first of the ranks began.
fn since(batch: &RecordBatch, origin: i64) -> Result<RecordBatch, Error> {
    let schema = batch.schema();
    let mut arrays: Vec<ArrayRef> = batch.columns().to_vec();
    for (array, field) in arrays.iter_mut().zip(schema.fields()) {
        if field.metadata().contains_key("since") {
            let Some(moments) = array.as_any().downcast_ref::<Int64Array>() else { continue };
            let since: Int64Array = moments.unary(|moment| moment.saturating_sub(origin));
            *array = Arc::new(since);
        }
    }
    Ok(RecordBatch::try_new(schema, arrays)?)
}
