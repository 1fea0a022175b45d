//! The metrics of the registry over what was loaded.

use std::sync::Arc;

use kymograph_analysis::table::{self, RecordBatch};
use kymograph_analysis::{Metric, Options, Part, registry, run};
use kymograph_converters::each;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::background::{Course, wait};
use crate::load::{Loaded, Rank};
use crate::options::{Wanted, in_python};
use crate::table::{Table, type_name};
use crate::{Error, NoDataError};

/// Of a column: name, type, unit, meaning.
type Column = (&'static str, &'static str, &'static str, String);

/// All metrics: name, what it answers, columns, and whether it compares two sides.
#[pyfunction]
pub fn metrics() -> Vec<(&'static str, &'static str, Vec<Column>, bool)> {
    let column = |column: &table::Column| {
        (column.name, type_name(column.ty), column.unit.name(), in_python(column.meaning))
    };
    let of = |metric: &Metric| {
        let columns = metric.columns.iter().map(column).collect();
        (metric.name, metric.answers, columns, metric.compares())
    };
    registry::ALL.iter().map(of).collect()
}

pub fn find(name: &str) -> PyResult<&'static Metric> {
    Metric::find(name).ok_or_else(|| PyKeyError::new_err(format!("there is no metric `{name}`")))
}

/// The table of a metric over all ranks of what was loaded, with options by name; None is an
/// option's default.
#[pyfunction]
pub fn metric(
    py: Python<'_>,
    loaded: &Bound<'_, Loaded>,
    name: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<Table> {
    let metric = find(name)?;
    if metric.compares() {
        return Err(PyValueError::new_err(format!("{name} compares two traces")));
    }
    let wanted = Wanted::of(name, options)?;
    let ranks = chosen(&loaded.get().ranks, &wanted.ranks)?;
    finish(py, metric, wanted, move |options| of_ranks(metric, &ranks, options))
}

/// The table of a metric that compares: what is first, then what is held against it.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    name: &str,
    base: &Bound<'_, Loaded>,
    test: &Bound<'_, Loaded>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Table> {
    let metric = find(name)?;
    let wanted = Wanted::of(name, options)?;
    let mut sides = Vec::new();
    for side in [base, test] {
        sides.push(chosen(&side.get().ranks, &wanted.ranks)?);
    }
    finish(py, metric, wanted, move |options| {
        let mut parts = Vec::new();
        for (number, ranks) in (0..).zip(&sides) {
            let given = of_ranks(metric, ranks, options)?;
            parts.extend(given.into_iter().map(|part| Part { rank: number, ..part }));
        }
        Ok(parts)
    })
}

fn chosen(ranks: &[Rank], wanted: &[i64]) -> PyResult<Vec<Rank>> {
    if let Some(missing) = wanted.iter().find(|&&n| ranks.iter().all(|rank| rank.number != n)) {
        return Err(PyValueError::new_err(format!("there is no rank {missing} in the traces")));
    }
    let wanted = |rank: &&Rank| wanted.is_empty() || wanted.contains(&rank.number);
    Ok(ranks.iter().filter(wanted).cloned().collect())
}

/// What the metric gives for each rank that has what it is about.
fn of_ranks(metric: &Metric, ranks: &[Rank], options: &Options) -> Result<Vec<Part>, Failure> {
    let size = |rank: &Rank| rank.trace.bytes() as u64;
    let given = each(ranks, size, |_, rank| {
        run::of_process(&[metric], &rank.trace, rank.process, rank.number, options).next()
    });
    let mut parts = Vec::new();
    let mut reason = None;
    for (rank, given) in ranks.iter().zip(given) {
        match given {
            Some(Ok(part)) => parts.push(part),
            Some(Err(error @ kymograph_analysis::Error::Nothing(_))) => {
                reason = Some(Failure(Some(rank.path.display().to_string()), error));
            }
            Some(Err(error)) => return Err(Failure(None, error)),
            None => {}
        }
    }
    match reason {
        Some(reason) if parts.is_empty() => Err(reason),
        _ => Ok(parts),
    }
}

/// Why there is no table, and of which file.
#[derive(Debug)]
pub struct Failure(Option<String>, kymograph_analysis::Error);

impl From<kymograph_analysis::Error> for Failure {
    fn from(error: kymograph_analysis::Error) -> Failure {
        Failure(None, error)
    }
}

impl From<Failure> for PyErr {
    fn from(Failure(path, error): Failure) -> PyErr {
        let why = in_python(&error.to_string());
        let text = path.map_or_else(|| why.clone(), |path| format!("{path}: {why}"));
        match error {
            kymograph_analysis::Error::Nothing(_) => NoDataError::new_err(text),
            kymograph_analysis::Error::Option(_) => PyValueError::new_err(text),
            _ => Error::new_err(text),
        }
    }
}

/// The table of a metric over all ranks, of what `parts` gives for each.
pub fn finish(
    py: Python<'_>,
    metric: &'static Metric,
    wanted: Wanted,
    parts: impl FnOnce(&Options) -> Result<Vec<Part>, Failure> + Send + 'static,
) -> PyResult<Table> {
    let work = move || -> Result<RecordBatch, Failure> {
        let options = &wanted.options;
        let mut batch = run::over_ranks(metric, parts(options)?, options)?;
        if let Some(column) = &wanted.sort {
            batch = table::sort(&batch, column)?;
        }
        let rows = wanted.limit.unwrap_or(usize::MAX).min(batch.num_rows());
        Ok(batch.slice(0, rows))
    };
    let batch = wait(py, &Arc::new(Course::default()), None, work)?;
    Ok(Table::new(metric.name, batch.map_err(PyErr::from)?))
}
