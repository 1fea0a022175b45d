//! What `kymo doctor` says about PyTorch: that of the `python3` that a program would run with. Runs
//! in a process of its own.

use std::path::PathBuf;
use std::process::Command;

use super::check;
use super::library::{Before, Torch};
use super::values::Values;
use crate::device::finding::Finding;
use crate::load::Library;
use crate::source::Settings;

/// Where Python has PyTorch, without importing it.
const WHERE: &str = "import importlib.util as u; s = u.find_spec('torch'); \
                     print(s.origin if s and s.origin else '')";

/// Loads the libtorch of `python3` and runs the checks that come before a recording. Says nothing
/// where there is none.
pub fn probe(_: &Settings, say: &mut dyn FnMut(Finding)) {
    let Some(path) = path() else { return };
    let shown = path.display();
    let advice = "its operators come through the ranges of emit_nvtx instead, without those of \
                  daemon threads";
    let Some(library) = Library::load_path(&path) else {
        let why = format!("{shown} cannot be loaded without the rest of PyTorch");
        return say(Finding::absent(
            "PyTorch",
            why,
            "programs say in their traces what is recorded",
        ));
    };
    match known(library) {
        Err(why) => say(Finding::bad("PyTorch", format!("{shown}: {why}"), advice)),
        Ok(layout) => {
            let inputs = match Values::find(library) {
                Ok(_) => "shapes on request".to_owned(),
                Err(why) => format!("but no shapes: {why}"),
            };
            let found = format!("operators are observed (as {layout}), {inputs} ({shown})");
            say(Finding::good("PyTorch", found));
        }
    }
}

fn known(library: Library) -> Result<&'static str, &'static str> {
    let torch = Torch::find(library).map_err(|missing| missing.to_str().unwrap_or("?"))?;
    let before = Before::find(library).ok_or("it has no RecordFunction::before that is known")?;
    check::layout(&torch, before).map(|layout| layout.read_in)
}

/// The library of the `python3` in the path.
fn path() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", WHERE]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let package = PathBuf::from(text.trim()).parent()?.to_owned();
    let file = package.join("lib/libtorch_cpu.so");
    file.exists().then_some(file)
}
