//! `kymograph._kymograph`, the native part of the Python package `kymograph`.
//!
//! * [`load`]: trace files become a [`load::Loaded`] in memory.
//! * [`metric`]: the metrics of the registry over what was loaded.
//! * [`options`]: what metrics can be told, and which of them reads what.
//! * [`table`]: their results, as Arrow.
//! * [`tables`]: the events of all ranks as tables.
//! * [`record`]: what a program does is recorded.
//! * [`scale`]: metrics over ranks that other processes read.
//! * [`slices`]: events as a table, and traces in other formats.
//! * [`background`]: long work on a thread of its own, while the interpreter stays responsive.
//!
//! Everything here releases the interpreter's lock while it computes.

mod background;
mod load;
mod metric;
mod options;
mod record;
mod scale;
mod slices;
mod table;
mod tables;

use pyo3::prelude::*;

pyo3::create_exception!(
    _kymograph,
    Error,
    pyo3::exceptions::PyException,
    "What Kymograph could not do, and why."
);
pyo3::create_exception!(
    _kymograph,
    NoDataError,
    Error,
    "The traces do not have what was asked for; the text says what is missing."
);

/// What is written against Python's C interface relies on the interpreter's lock: a free-threaded
/// Python turns it on when it imports this.
#[pymodule(gil_used = true)]
fn _kymograph(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<Error>())?;
    module.add("NoDataError", py.get_type::<NoDataError>())?;
    module.add_class::<load::Loaded>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(load::load, module)?)?;
    module.add_function(wrap_pyfunction!(metric::metric, module)?)?;
    module.add_function(wrap_pyfunction!(metric::compare, module)?)?;
    module.add_function(wrap_pyfunction!(metric::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(options::options, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_of, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_of_file, module)?)?;
    module.add_function(wrap_pyfunction!(tables::tables, module)?)?;
    module.add_function(wrap_pyfunction!(tables::table, module)?)?;
    module.add_function(wrap_pyfunction!(slices::events, module)?)?;
    module.add_function(wrap_pyfunction!(slices::convert, module)?)?;
    module.add_function(wrap_pyfunction!(load::trace_files, module)?)?;
    module.add_function(wrap_pyfunction!(scale::check_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(scale::rank_tables, module)?)?;
    module.add_function(wrap_pyfunction!(scale::combined, module)?)?;
    module.add_function(wrap_pyfunction!(scale::job_problems, module)?)?;
    record::add(module)
}
