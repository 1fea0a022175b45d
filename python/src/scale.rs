//! Metrics over ranks that other processes read: what `kymograph.scale` has workers do, and what it
//! makes of their answers. Tables travel as Arrow's streams.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use kymograph_analysis::job::{Job, Member, damage, list};
use kymograph_analysis::{Error as Failure, Metric, Model, Part, run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::Error;
use crate::background::{Course, wait};
use crate::load::read;
use crate::metric::{find, finish};
use crate::options::Wanted;
use crate::table::Table;

/// A rank's place in its job: the rank, how many there are, when it begins (nanoseconds since 1970).
type Place = (i64, Option<i64>, Option<i64>);
/// What metrics gave for a rank: when it begins by its own clock, and of each metric a table, or
/// why it has none.
type Given<'py> = (Place, i64, Vec<(Option<Bound<'py, PyBytes>>, Option<String>)>);

fn failed(error: &ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

/// Refuses names that are no metrics of ranks, and options that one of them does not have.
#[pyfunction]
pub fn check_metrics(names: Vec<String>, options: &Bound<'_, PyDict>) -> PyResult<()> {
    names.iter().try_for_each(|name| wanted(name, options).map(drop))
}

fn wanted(name: &str, options: &Bound<'_, PyDict>) -> PyResult<(&'static Metric, Wanted)> {
    let metric = find(name)?;
    if metric.compares() {
        return Err(PyValueError::new_err(format!("{name} compares two traces")));
    }
    Ok((metric, Wanted::of(name, options)?))
}

/// What metrics give for the ranks of a trace. `otherwise` is the rank if the trace does not say.
#[pyfunction]
pub fn rank_tables<'py>(
    py: Python<'py>,
    path: PathBuf,
    otherwise: i64,
    names: Vec<String>,
    options: &Bound<'py, PyDict>,
    damaged: bool,
) -> PyResult<Vec<Given<'py>>> {
    let mut metrics = Vec::new();
    // All have the same options: each has been asked whether it takes them.
    let mut all = Wanted::default();
    for name in &names {
        let (metric, options) = wanted(name, options)?;
        metrics.push(metric);
        all = options;
    }
    let course = Arc::new(Course::default());
    let theirs = course.clone();
    let work = move || -> PyResult<Vec<_>> {
        let trace = read(&path, &theirs)?;
        if let Some(what) = damage(&trace).filter(|_| !damaged) {
            let what = format!("{}: {what}; damaged=True takes what is there", path.display());
            return Err(Error::new_err(what));
        }
        let mut ranks = run::ranks(&trace, otherwise);
        ranks.retain(|(_, rank)| all.ranks.is_empty() || all.ranks.contains(rank));
        let of = |(process, rank)| {
            let mut model = Model::new(&trace, process, rank, all.options.reading);
            model.restrict(&all.options);
            let origin = model.origin;
            let tables =
                metrics.iter().map(|metric| match run::of_rank(metric, &model, &all.options) {
                    Ok(part) => Ok((Some(packed(&part.batch).map_err(|e| failed(&e))?), None)),
                    Err(why @ Failure::Nothing(_)) => {
                        Ok((None, Some(format!("{}: {why}", path.display()))))
                    }
                    Err(why) => Err(Error::new_err(format!("{}: {why}", path.display()))),
                });
            let tables = tables.collect::<PyResult<Vec<_>>>()?;
            Ok((Member::of(&trace, rank, origin), origin, tables))
        };
        ranks.into_iter().map(of).collect()
    };
    let given = wait(py, &course, None, work)??;
    let bytes = |(table, why): (Option<Vec<u8>>, Option<String>)| {
        (table.map(|bytes| PyBytes::new(py, &bytes)), why)
    };
    let of = |(member, origin, tables): (Member, i64, Vec<_>)| {
        let place = (member.rank, member.world_size, member.begins);
        (place, origin, tables.into_iter().map(bytes).collect())
    };
    Ok(given.into_iter().map(of).collect())
}

fn packed(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

fn unpacked(bytes: &[u8]) -> Result<RecordBatch, ArrowError> {
    let mut reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    let schema = reader.schema();
    reader.next().unwrap_or_else(|| Ok(RecordBatch::new_empty(schema)))
}

/// The table of a metric over all ranks, of what it gave for each: the rank, when it begins, and
/// the table.
#[pyfunction]
pub fn combined(
    py: Python<'_>,
    name: &str,
    parts: Vec<(i64, i64, PyBackedBytes)>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Table> {
    let (metric, wanted) = wanted(name, options)?;
    finish(py, metric, wanted, move |_| {
        let part = |(rank, origin, bytes): &(i64, i64, PyBackedBytes)| {
            Ok(Part { rank: *rank, origin: *origin, batch: unpacked(bytes)? })
        };
        Ok(parts.iter().map(part).collect::<Result<_, Failure>>()?)
    })
}

/// What is wrong with the ranks of a job: why they are not of one, and which are missing.
#[pyfunction]
pub fn job_problems(members: Vec<(String, Place)>) -> (Vec<String>, Option<String>) {
    let mut job = Job::default();
    let mut there: BTreeMap<i64, &str> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (path, (rank, world_size, begins)) in &members {
        let member = Member { rank: *rank, world_size: *world_size, begins: *begins };
        if let Err(why) = job.check(&member) {
            wrong.push(format!("{path}: {why}"));
        }
        job.learn(&member);
        if let Some(other) = there.insert(*rank, path) {
            wrong.push(format!("{other} and {path} are both rank {rank}: give one of them only"));
        }
    }
    let there: BTreeSet<i64> = there.into_keys().collect();
    let missing = job.missing(&there);
    (wrong, (!missing.is_empty()).then(|| format!("{} missing", list(&missing))))
}
