//! Recording from Python: calls of the library's C interface.
//!
//! * [`library`]: the library is found, or loaded.
//! * [`scope`]: slices, by hand against Python's C interface.
//! * [`bound`]: methods that a scope keeps.
//! * [`levels`]: which of a thread's open scopes the library knows.
//! * [`tasks`]: tracks of asyncio's tasks.
//! * [`args`]: Python's values as arguments.
//! * [`events`]: everything else that is recorded.
//! * [`control`]: recordings begin and end.

mod args;
mod bound;
mod control;
mod events;
mod levels;
mod library;
mod scope;
mod tasks;

use pyo3::prelude::*;

/// Adds what is in here to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Under `kymo record` there is something to record from the start.
    library::adopt();
    module.add_class::<args::Flow>()?;
    scope::add(module)?;
    module.add_function(wrap_pyfunction!(events::instant, module)?)?;
    module.add_function(wrap_pyfunction!(events::counter, module)?)?;
    module.add_function(wrap_pyfunction!(events::flow, module)?)?;
    module.add_function(wrap_pyfunction!(events::range_begin, module)?)?;
    module.add_function(wrap_pyfunction!(events::range_end, module)?)?;
    module.add_function(wrap_pyfunction!(events::is_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(events::thread_name, module)?)?;
    module.add_function(wrap_pyfunction!(events::process_name, module)?)?;
    module.add_function(wrap_pyfunction!(control::start, module)?)?;
    module.add_function(wrap_pyfunction!(control::forget_calls, module)?)?;
    module.add_function(wrap_pyfunction!(control::stop, module)?)?;
    module.add_function(wrap_pyfunction!(control::change, module)?)?;
    module.add_function(wrap_pyfunction!(control::metadata, module)?)?;
    module.add_function(wrap_pyfunction!(control::flush, module)?)?;
    module.add_function(wrap_pyfunction!(control::dump, module)?)?;
    module.add_function(wrap_pyfunction!(control::arm, module)?)?;
    module.add_function(wrap_pyfunction!(control::step, module)?)?;
    module.add_function(wrap_pyfunction!(control::is_recording, module)?)?;
    module.add_function(wrap_pyfunction!(control::adopted, module)?)
}
