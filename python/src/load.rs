//! Trace files become a [`Loaded`].

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kymograph_analysis::run;
use kymograph_converters::trace::{ProcessId, Trace, Value};
use kymograph_converters::{each, folder, format};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Error;
use crate::background::{Course, wait};

/// A rank: a file, or a process in one.
#[derive(Clone, Debug)]
pub struct Rank {
    pub number: i64,
    pub process: Option<ProcessId>,
    pub path: PathBuf,
    pub trace: Arc<Trace>,
}

/// Traces in memory, by rank. Immutable: any thread may use it.
#[pyclass(frozen, module = "kymograph._kymograph")]
#[derive(Debug)]
pub struct Loaded {
    /// In the order of their numbers.
    pub ranks: Vec<Rank>,
    paths: Vec<PathBuf>,
    warnings: Vec<String>,
    bytes: usize,
}

/// Why a file could not be read.
#[derive(Debug)]
pub enum Failure {
    Io(PathBuf, io::Error),
    Format(PathBuf, format::Error),
    Ranks(String),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let failed =
            |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        match failure {
            Failure::Io(path, error) if error.kind() == io::ErrorKind::NotFound => {
                PyFileNotFoundError::new_err(failed(&path, &error))
            }
            Failure::Io(path, error) => PyOSError::new_err(failed(&path, &error)),
            Failure::Format(path, error) => Error::new_err(failed(&path, &error)),
            Failure::Ranks(why) => PyValueError::new_err(why),
        }
    }
}

/// Reads traces: each word is a file, a folder, or a pattern with `*` in its last part. `tick`
/// is called now and then with the bytes that were read and how many there are.
#[pyfunction]
#[pyo3(signature = (words, tick=None))]
pub fn load(
    py: Python<'_>,
    words: Vec<PathBuf>,
    tick: Option<Bound<'_, PyAny>>,
) -> PyResult<Loaded> {
    let paths = trace_files(words)?;
    if paths.is_empty() {
        return Err(PyValueError::new_err("say which trace: a file, a folder or a pattern"));
    }
    let course = Arc::new(Course::default());
    let total: Option<u64> = paths.iter().map(|path| size(path)).sum();
    course.total.store(total.unwrap_or(0), Ordering::Relaxed);
    let theirs = course.clone();
    wait(py, &course, tick.as_ref(), move || read_all(paths, &theirs))?.map_err(PyErr::from)
}

/// How many bytes a file has; none of what is no file.
fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(|about| about.is_file()).map(|about| about.len())
}

/// The trace files that words stand for: files, folders, patterns.
#[pyfunction]
pub fn trace_files(words: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for word in words {
        match word.to_str() {
            Some(text) => paths.extend(folder::traces(text).map_err(PyFileNotFoundError::new_err)?),
            // Patterns are text; a file may have any name.
            None => paths.push(word),
        }
    }
    Ok(paths)
}

fn read_all(paths: Vec<PathBuf>, course: &Arc<Course>) -> Result<Loaded, Failure> {
    let traces = each(&paths, |path| size(path).unwrap_or(0), |_, path| read(path, course));
    let mut ranks: BTreeMap<i64, Rank> = BTreeMap::new();
    let mut recorded: HashMap<(String, i64), i64> = HashMap::new();
    let mut warnings = Vec::new();
    let mut bytes = 0;
    for (number, (path, trace)) in paths.iter().zip(traces).enumerate() {
        let trace = Arc::new(trace?);
        bytes += trace.bytes();
        warnings.extend(complaints(path, &trace));
        for (process, rank) in run::ranks(&trace, number as i64) {
            let before = recorder(&trace).and_then(|recorder| recorded.insert(recorder, rank));
            if let Some(other) = before.filter(|other| *other != rank) {
                warnings.push(format!(
                    "{} is of the process that recorded rank {other}, and not of another rank: it \
                     is taken for rank {rank} since nothing in it says which it is",
                    path.display()
                ));
            }
            let new = Rank { number: rank, process, path: path.clone(), trace: trace.clone() };
            if let Some(other) = ranks.insert(rank, new) {
                return Err(Failure::Ranks(format!(
                    "{} and {} are both rank {rank}: give one of them only",
                    other.path.display(),
                    path.display()
                )));
            }
        }
    }
    Ok(Loaded { ranks: ranks.into_values().collect(), paths, warnings, bytes })
}

/// Which process made a recording of ours: where, and its number. Of a trace of one process only.
fn recorder(trace: &Trace) -> Option<(String, i64)> {
    let Some(Value::Str(boot)) = trace.facts.get(trace.strings.find("kymograph.boot_id")?) else {
        return None;
    };
    let mut pids = trace.processes.iter().map(|(_, process)| process.pid);
    match (pids.next(), pids.next()) {
        (Some(pid), None) => Some((trace.strings.get(boot).to_owned(), pid)),
        _ => None,
    }
}

/// Reads a trace.
pub fn read(path: &Path, course: &Arc<Course>) -> Result<Trace, Failure> {
    let failed = |error| Failure::Io(path.to_owned(), error);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let is_file = file.metadata().is_ok_and(|about| about.is_file());
    let watched = Watched { file, course: course.clone() };
    let read = if is_file { format::read_ahead } else { format::read };
    read(watched, None).map_err(|error| Failure::Format(path.to_owned(), error))
}

/// A file whose reading can be followed and given up.
struct Watched {
    file: File,
    course: Arc<Course>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.course.given_up.load(Ordering::Relaxed) {
            return Err(io::Error::other("given up"));
        }
        let read = self.file.read(buffer)?;
        self.course.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What readers had to pass over and what recordings lost, a sentence each.
fn complaints(path: &Path, trace: &Trace) -> Vec<String> {
    let name = path.display();
    // Arrows are not what metrics look at, and Kineto writes many with one end.
    let warnings = trace.facts.warnings.iter().filter(|w| !w.what.starts_with("arrow "));
    let times = |count| if count == 1 { String::new() } else { format!(" ({count} times)") };
    let mut found: Vec<String> =
        warnings.map(|w| format!("{name}: {}{}", w.what, times(w.count))).collect();
    let lost: u64 = trace.facts.losses.iter().map(|loss| loss.count).sum();
    if lost > 0 {
        found.push(format!("{name}: {lost} events were lost while it was recorded"));
    }
    found
}

#[pymethods]
impl Loaded {
    /// The numbers of the ranks.
    #[getter]
    fn ranks(&self) -> Vec<i64> {
        self.ranks.iter().map(|rank| rank.number).collect()
    }

    /// The files, in the order in which they were found.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// What could not be read, and what was lost while recording: sentences.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Bytes of memory that the traces take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes
    }

    /// What is in the trace of a rank: numbers by name.
    fn counts<'py>(&self, py: Python<'py>, rank: i64) -> PyResult<Bound<'py, PyDict>> {
        let unknown = || PyValueError::new_err(format!("there is no rank {rank}"));
        let found = self.ranks.iter().find(|r| r.number == rank).ok_or_else(unknown)?;
        let trace = &found.trace;
        let counts = PyDict::new(py);
        counts.set_item("slices", trace.slices.len())?;
        counts.set_item("instants", trace.instants.len())?;
        counts.set_item("activities", trace.activities.len())?;
        counts.set_item("processes", trace.processes.len())?;
        counts.set_item("threads", trace.threads.len())?;
        counts.set_item("devices", trace.devices.len())?;
        Ok(counts)
    }
}
