//! `kymo doctor`: what can be recorded on this machine, and if not, why not.
//!
//! Whatever loads a foreign library happens in a child process, [`Probe`], which is
//! started exactly as `kymo record` starts a command: some drivers abort the process that
//! loads them.

use super::{Refusal, library};
use clap::Args;
use kymograph::Config;
use kymograph::control::Place;
use std::ffi::{CStr, CString};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Tells what can be recorded on this machine, and what to do about the rest.
#[derive(Args)]
pub(super) struct Doctor {
    /// For programs.
    #[arg(long)]
    json: bool,
}

/// Runs inside the child: prints what the library and the drivers look like from there.
#[derive(Args)]
pub(super) struct Probe {
    library: std::path::PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Bad,
    Absent,
}

struct Check {
    name: &'static str,
    state: State,
    detail: String,
    /// What to do, unless it is good.
    advice: String,
}

/// Drivers by the names under which they are loaded: vendor, names, what they are for.
const DRIVERS: [(&str, &[&str], &str); 5] = [
    ("NVIDIA GPU", &["libcuda.so.1"], "kernels and copies of CUDA programs"),
    (
        "AMD GPU",
        &["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", "librocprofiler-sdk.so"],
        "kernels and copies of HIP programs",
    ),
    ("Intel GPU", &["libze_loader.so.1"], "kernels and copies of Level Zero and SYCL programs"),
    ("Intel PTI", &["libpti_view.so.0", "libpti_view.so"], "activities of Intel GPUs"),
    ("Intel Gaudi", &["libSynapse.so"], "activities of Gaudi accelerators"),
];

impl Doctor {
    pub(super) fn run(self) -> Result<ExitCode, Refusal> {
        let mut checks = Vec::new();
        injection(&mut checks);
        checks.push(clock());
        checks.push(control());
        checks.push(folder());
        let bad = checks.iter().any(|check| check.state == State::Bad);
        if self.json {
            print(&json(&checks));
        } else {
            print(&text(&checks));
        }
        Ok(ExitCode::from(u8::from(bad)))
    }
}

fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn good(name: &'static str, detail: impl Into<String>) -> Check {
    Check { name, state: State::Good, detail: detail.into(), advice: String::new() }
}

fn not(state: State, name: &'static str, detail: impl Into<String>, advice: &str) -> Check {
    Check { name, state, detail: detail.into(), advice: advice.to_owned() }
}

/// The library in a child process, and with it annotations and drivers.
fn injection(checks: &mut Vec<Check>) {
    let (config, problems) = Config::from_env();
    for problem in problems {
        let advice = "correct or unset it";
        checks.push(not(State::Bad, "environment", problem.to_string(), advice));
    }
    let library = match library::find(&config) {
        Ok(library) => library,
        Err(Refusal(why)) => {
            checks.push(not(State::Bad, "library", why, "nothing can be recorded before"));
            return;
        }
    };
    let answers = match probe(&library) {
        Ok(answers) => answers,
        Err(why) => {
            let advice = "the library breaks programs on this machine: build it here";
            checks.push(not(State::Bad, "library", why, advice));
            return;
        }
    };
    let answer = |key: &str| {
        let lines = answers.lines().filter_map(|line| line.split_once('='));
        lines.into_iter().find(|(k, _)| *k == key).map(|(_, v)| v.to_owned())
    };
    checks.push(match answer("error") {
        None if answer("preloaded").is_some() => {
            good("library", format!("{} (glibc {})", library.display(), glibc()))
        }
        None => not(
            State::Bad,
            "library",
            format!("{} was not injected into a child", library.display()),
            "something on this machine clears LD_PRELOAD",
        ),
        Some(error) => not(
            State::Bad,
            "library",
            format!("{error} (glibc here: {})", glibc()),
            "build kymograph on this machine, or on an older one",
        ),
    });
    let hooks = [
        ("NVTX", "nvtx", "NVTX_INJECTION64_PATH"),
        ("ITT", "itt", "INTEL_LIBITTNOTIFY64"),
        ("CUDA hook", "cuda", "CUDA_INJECTION64_PATH"),
    ];
    for (name, key, variable) in hooks {
        checks.push(match (answer(key), std::env::var_os(variable)) {
            (Some(_), None) if key == "cuda" => good(name, "the driver will find the library"),
            (Some(_), None) => good(name, "annotations of programs are recorded"),
            (Some(_), Some(value)) => not(
                State::Bad,
                name,
                format!("{variable} is {} already", value.display()),
                "another tool collects them; unset it to record",
            ),
            (None, _) => not(
                State::Bad,
                name,
                "the library does not offer it",
                "install kymo and libkymograph.so of one release",
            ),
        });
    }
    for (name, _, what) in DRIVERS {
        checks.push(match answer(name) {
            Some(library) => good(name, format!("{library} is here: {what}")),
            None => {
                let advice = format!("no {what} will be seen; install the driver to change that");
                not(State::Absent, name, "no driver library", &advice)
            }
        });
    }
    nvidia::checks(checks, answer);
}

/// What is asked of NVIDIA's libraries once the driver was found.
mod nvidia {
    use kymograph_backends::nvidia;

    use super::{Check, Config, State, good, not, print};

    /// In the child.
    pub(super) fn probe() {
        let (config, _) = Config::from_env();
        let found = nvidia::probe(config.cupti_path.as_deref());
        let parts = [
            ("cuda.driver", found.driver),
            ("cuda.cupti", found.cupti),
            ("cuda.free", found.free.map(|free| free.map(|()| String::new()))),
        ];
        for (key, part) in parts {
            match part {
                None => {}
                Some(Ok(text)) => print(&format!("{key}={text}\n")),
                Some(Err(why)) => print(&format!("{key}.error={}\n", why.replace('\n', " "))),
            }
        }
        if let Some(restricted) = found.counters_restricted {
            print(&format!("cuda.restricted={restricted}\n"));
        }
    }

    /// What the child said. `None` where it had nothing to ask.
    pub(super) fn checks(checks: &mut Vec<Check>, answer: impl Fn(&str) -> Option<String>) {
        if let Some(driver) = answer("cuda.driver") {
            checks.push(good("CUDA driver", driver));
        } else if let Some(why) = answer("cuda.driver.error") {
            checks.push(not(State::Absent, "CUDA driver", why, "no CUDA program runs here"));
        }
        if let Some(cupti) = answer("cuda.cupti") {
            checks.push(good("CUPTI", cupti));
        } else if let Some(why) = answer("cuda.cupti.error") {
            let advice = "programs that bring their own (PyTorch does) are recorded all the same";
            checks.push(not(State::Absent, "CUPTI", why, advice));
        }
        if answer("cuda.free").is_some() {
            let names = "kernel, gpu_memcpy, gpu_memset, cuda_runtime, cuda_driver, cuda_sync, \
                         overhead, external_correlation, graph_trace, memory, memory_pool, \
                         unified_memory";
            checks.push(good("CUDA activity", format!("{names} can be recorded")));
        } else if let Some(who) = answer("cuda.free.error") {
            let advice = "CUPTI serves one tool at a time: stop the other one";
            checks.push(not(State::Bad, "CUDA activity", who, advice));
        }
        match answer("cuda.restricted").as_deref() {
            Some("false") => checks.push(good("GPU counters", "everybody may read them")),
            Some(_) => checks.push(not(
                State::Absent,
                "GPU counters",
                "only administrators may read them",
                "activities need none; for counters set NVreg_RestrictProfilingToAdminUsers=0",
            )),
            None => {}
        }
    }
}

fn probe(library: &Path) -> Result<String, String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let place = Place::create().map_err(|e| e.to_string())?;
    let preload = library::preloadable(library, place.folder()).map_err(|e| e.to_string())?;
    let mut command = Command::new(me);
    command.arg("__probe").arg(library);
    command.env("LD_PRELOAD", preload);
    let output = command.output().map_err(|e| e.to_string())?;
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    // A driver that crashes the probe must not hide what was found before it.
    if answers.contains("preloaded=") || answers.contains("error=") || output.status.success() {
        return Ok(answers);
    }
    Err(format!("a program with the library in it ended with {}", output.status))
}

impl Probe {
    pub(super) fn run(self) -> Result<ExitCode, Refusal> {
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
        for (name, libraries, _) in DRIVERS {
            if let Some(found) = libraries.iter().find(|library| load(library).is_ok()) {
                print(&format!("{name}={found}\n"));
            }
        }
        nvidia::probe();
        Ok(ExitCode::SUCCESS)
    }
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

fn glibc() -> String {
    // SAFETY: returns a static C string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

fn clock() -> Check {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
    let source = if source.is_empty() { "unknown" } else { source.trim() };
    if cfg!(target_arch = "aarch64") {
        return good("clock", "the processor's counter");
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let flag = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    if flag("constant_tsc") && flag("nonstop_tsc") {
        return good("clock", format!("invariant TSC; the kernel uses {source}"));
    }
    not(
        State::Absent,
        "clock",
        format!("no invariant TSC; the kernel uses {source}"),
        "CLOCK_BOOTTIME is used instead: exact, but each event costs some 20 ns more",
    )
}

fn control() -> Check {
    match Place::create() {
        Ok(place) => good("shared memory", place.folder().display().to_string()),
        Err(error) => {
            not(State::Bad, "shared memory", error.to_string(), "make /dev/shm or TMPDIR writable")
        }
    }
}

fn folder() -> Check {
    let here = std::env::current_dir().unwrap_or_default();
    let writable = tempfile_in(&here);
    match writable {
        Ok(()) => good("output folder", format!("{} is writable", here.display())),
        Err(error) => not(
            State::Bad,
            "output folder",
            format!("{}: {error}", here.display()),
            "give a path elsewhere with -o",
        ),
    }
}

/// Makes a file and removes it: permissions alone do not tell (read-only, full).
fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".kymo-doctor-{}", std::process::id()));
    std::fs::write(&path, b"kymo").and_then(|()| std::fs::remove_file(&path))
}

fn text(checks: &[Check]) -> String {
    let mut out = String::new();
    for check in checks {
        let mark = match check.state {
            State::Good => '✓',
            State::Bad => '✗',
            State::Absent => '–',
        };
        let _ = write!(out, "{mark} {:<14} {}", check.name, check.detail);
        if !check.advice.is_empty() {
            let _ = write!(out, "; {}", check.advice);
        }
        out.push('\n');
    }
    out
}

fn json(checks: &[Check]) -> String {
    let quoted = |text: &str| {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        out + "\""
    };
    let rows = checks.iter().map(|check| {
        let state = match check.state {
            State::Good => "good",
            State::Bad => "bad",
            State::Absent => "absent",
        };
        format!(
            "  {{\"check\": {}, \"state\": \"{state}\", \"detail\": {}, \"advice\": {}}}",
            quoted(check.name),
            quoted(&check.detail),
            quoted(&check.advice)
        )
    });
    format!("[\n{}\n]\n", rows.collect::<Vec<_>>().join(",\n"))
}
