//! The processes in which `kymo doctor` asks foreign libraries.
//!
//! Each is started exactly as `kymo record` starts a command, since libraries of vendors may
//! abort the process that loads them: one for the library and what is only looked for, and
//! one for every backend.

use super::{Failure, library};
use clap::Args;
use kymograph::Config;
use kymograph_backends::device::finding::Finding;
use kymograph_backends::source::Settings;
use kymograph_backends::torch;
use kymograph_backends::vendors::VENDORS;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

/// Looks what a backend needs, and says each finding at once: the next may be the last.
type Look = fn(&Settings, &mut dyn FnMut(Finding));

/// The backends: a name to ask for them by, and who answers.
pub(super) fn backends() -> impl Iterator<Item = (&'static str, Look)> {
    let vendors = VENDORS.iter().map(|vendor| (vendor.names.shown, vendor.probe));
    vendors.chain([("PyTorch", torch::probe as Look)])
}

/// Runs inside the child: prints what the library and the drivers look like from there.
#[derive(Args)]
pub(super) struct Probe {
    library: std::path::PathBuf,
    /// A backend to ask instead.
    backend: Option<String>,
}

/// What the library looks like from inside a program, as `key=value` lines.
pub(super) fn library(library: &Path) -> Result<String, String> {
    let output = child(library, None)?;
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    // A driver that crashes the probe must not hide what was found before it.
    if answers.contains("preloaded=") || answers.contains("error=") || output.status.success() {
        return Ok(answers);
    }
    Err(format!("a program with the library in it ended with {}", output.status))
}

/// What a backend finds.
pub(super) fn backend(library: &Path, name: &str) -> Vec<Finding> {
    let output = match child(library, Some(name)) {
        Ok(output) => output,
        Err(why) => return vec![Finding::bad(name, why, "correct that first")],
    };
    let answers = String::from_utf8_lossy(&output.stdout);
    let mut findings: Vec<_> = answers.lines().filter_map(Finding::from_line).collect();
    if !output.status.success() {
        let why = format!("asking its libraries ended the process with {}", output.status);
        let advice = "programs that use it may end like this, with or without a recording";
        findings.push(Finding::bad(name, why, advice));
    }
    findings
}

fn child(library: &Path, backend: Option<&str>) -> Result<Output, String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let preload = library::preloadable(library).map_err(|e| e.to_string())?;
    let mut command = Command::new(me);
    command.arg("__probe").arg(library).args(backend);
    command.env("LD_PRELOAD", preload);
    command.output().map_err(|e| e.to_string())
}

impl Probe {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match &self.backend {
            None => self.look(),
            Some(name) => ask(name),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn look(&self) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if maps.contains(&*self.library.to_string_lossy()) {
            print("preloaded=1\n");
        }
        match load(&self.library.to_string_lossy()) {
            Err(error) => print(&format!("error={}\n", error.replace('\n', " "))),
            Ok(handle) => {
                let hooks = [
                    ("nvtx", c"InitializeInjectionNvtx2"),
                    ("itt", c"__itt_api_init"),
                    ("cuda", c"InitializeInjection"),
                ];
                for (key, symbol) in hooks {
                    // SAFETY: a handle from dlopen that is never closed, and a C string.
                    if !unsafe { libc::dlsym(handle, symbol.as_ptr()) }.is_null() {
                        print(&format!("{key}=1\n"));
                    }
                }
            }
        }
    }
}

fn ask(name: &str) {
    let (config, _) = Config::from_env();
    let settings = Settings {
        cupti_path: config.cupti_path,
        pti_path: config.pti_path,
        gpu_counters: None,
        ..Settings::default()
    };
    for (_, look) in backends().filter(|(known, _)| *known == name) {
        look(&settings, &mut |finding| print(&(finding.to_line() + "\n")));
    }
}

fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Loads a library for the rest of the process.
fn load(name: &str) -> Result<*mut libc::c_void, String> {
    let name = CString::new(name).map_err(|e| e.to_string())?;
    // SAFETY: loading runs the library's constructors, which is what this process is for;
    // dlerror returns null or a C string that stays until the next call.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        if !handle.is_null() {
            return Ok(handle);
        }
        let error = libc::dlerror();
        if error.is_null() {
            return Err("unknown error".to_owned());
        }
        Err(CStr::from_ptr(error).to_string_lossy().into_owned())
    }
}
