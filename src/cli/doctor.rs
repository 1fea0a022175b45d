//! `kymo doctor`: what can be recorded on this machine, and if not, why not.
//!
//! Whatever loads a foreign library happens in child processes ([`super::probe`]).

use super::{Failure, library, print, probe, quoted, selftest};
use clap::Args;
use kymograph::Config;
use kymograph::control::{Rendezvous, dynolog};
use kymograph_backends::device::finding::{Finding, State};
use std::ffi::CStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Tells what can be recorded on this machine, and what to do about the rest.
#[derive(Args)]
pub(super) struct Doctor {
    /// For programs.
    #[arg(long)]
    json: bool,
    /// Does known work on the devices of this machine, or of one vendor, alone and recorded,
    /// and compares what the traces say. Fails if they are wrong.
    #[arg(long, value_name = "VENDOR", num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with = "json")]
    selftest: Option<Option<selftest::Vendor>>,
    /// Where the self-test leaves what it saw.
    #[arg(long, value_name = "PATH", default_value = "kymo-selftest.txt", requires = "selftest")]
    report: PathBuf,
}

impl Doctor {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if let Some(vendor) = self.selftest {
            return selftest::run(vendor, &self.report);
        }
        let mut checks = Vec::new();
        injection(&mut checks);
        checks.push(clock());
        checks.push(control());
        checks.push(folder());
        checks.push(daemon());
        let bad = checks.iter().any(|check| check.state == State::Bad);
        if self.json {
            print(&json(&checks));
        } else {
            print(&text(&checks));
        }
        Ok(ExitCode::from(u8::from(bad)))
    }
}

/// The library in a child process, and with it annotations and drivers.
fn injection(checks: &mut Vec<Finding>) {
    let (config, problems) = Config::from_env();
    for problem in problems {
        let advice = "correct or unset it";
        checks.push(Finding::bad("environment", problem.to_string(), advice));
    }
    let library = match library::find(&config) {
        Ok(library) => library,
        Err(Failure(why)) => {
            checks.push(Finding::bad("library", why, "nothing can be recorded before"));
            return;
        }
    };
    let answers = match probe::library(&library) {
        Ok(answers) => answers,
        Err(why) => {
            let advice = "the library breaks programs on this machine: build it here";
            checks.push(Finding::bad("library", why, advice));
            return;
        }
    };
    let answer = |key: &str| {
        let lines = answers.lines().filter_map(|line| line.split_once('='));
        lines.into_iter().find(|(k, _)| *k == key).map(|(_, v)| v.to_owned())
    };
    checks.push(match answer("error") {
        None if answer("preloaded").is_some() => {
            Finding::good("library", format!("{} (glibc {})", library.display(), glibc()))
        }
        None => Finding::bad(
            "library",
            format!("{} was not injected into a child", library.display()),
            "something on this machine clears LD_PRELOAD",
        ),
        Some(error) => Finding::bad(
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
            (Some(_), None) if key == "cuda" => {
                Finding::good(name, "the driver will find the library")
            }
            (Some(_), None) => Finding::good(name, "annotations of programs are recorded"),
            (Some(_), Some(value)) => Finding::bad(
                name,
                format!("{variable} is {} already", value.display()),
                "another tool collects them; unset it to record",
            ),
            (None, _) => Finding::bad(
                name,
                "the library does not offer it",
                "install kymo and libkymograph.so of one release",
            ),
        });
    }
    for backend in probe::backends() {
        checks.extend(probe::backend(&library, backend.0));
    }
}

fn glibc() -> String {
    // SAFETY: returns a static C string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

fn clock() -> Finding {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
    let source = if source.is_empty() { "unknown" } else { source.trim() };
    if cfg!(target_arch = "aarch64") {
        return Finding::good("clock", "the processor's counter");
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let flag = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    if flag("constant_tsc") && flag("nonstop_tsc") {
        return Finding::good("clock", format!("invariant TSC; the kernel uses {source}"));
    }
    Finding::absent(
        "clock",
        format!("no invariant TSC; the kernel uses {source}"),
        "CLOCK_BOOTTIME is used instead: exact, but each event costs some 20 ns more",
    )
}

fn control() -> Finding {
    match Rendezvous::create() {
        Ok(rendezvous) => Finding::good("shared memory", rendezvous.folder().display().to_string()),
        Err(error) => {
            Finding::bad("shared memory", error.to_string(), "make /dev/shm or TMPDIR writable")
        }
    }
}

fn folder() -> Finding {
    let here = std::env::current_dir().unwrap_or_default();
    let writable = tempfile_in(&here);
    match writable {
        Ok(()) => Finding::good("output folder", format!("{} is writable", here.display())),
        Err(error) => Finding::bad(
            "output folder",
            format!("{}: {error}", here.display()),
            "give a path elsewhere with -o",
        ),
    }
}

/// Whether a fleet's daemon can ask for traces here. It is not spoken to.
fn daemon() -> Finding {
    const NAME: &str = "daemon";
    let (mut config, _) = Config::from_env();
    let wanted = !config.daemon.name.is_empty();
    if !wanted {
        let _ = config.set("DAEMON", "dynolog");
    }
    let socket = match &config.daemon.folder {
        Some(folder) => format!("{}/{}", folder.display(), config.daemon.name),
        None => format!("@{}", config.daemon.name),
    };
    match dynolog::listens(&config.daemon) {
        Ok(()) if wanted => Finding::good(NAME, format!("{socket} can be asked for requests")),
        Ok(()) => Finding::good(
            NAME,
            format!("{socket} is there; with KYMOGRAPH_DAEMON=dynolog programs listen to it"),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            Finding::bad(NAME, format!("{socket} cannot be asked"), error.to_string())
        }
        Err(error) => {
            use std::io::ErrorKind::{ConnectionRefused, NotFound};
            let detail = match error.kind() {
                ConnectionRefused | NotFound => format!("no daemon listens at {socket}"),
                _ => format!("cannot connect to {socket}: {error}"),
            };
            let advice = "start it with `dynolog --enable_ipc_monitor`, in the same network \
                          namespace or with the same KINETO_IPC_SOCKET_DIR";
            if wanted {
                Finding::bad(NAME, detail, advice)
            } else {
                Finding::absent(NAME, detail, format!("for `dyno gputrace` {advice}"))
            }
        }
    }
}

/// Makes a file and removes it: permissions alone do not tell (read-only, full).
fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".kymo-doctor-{}", std::process::id()));
    std::fs::write(&path, b"kymo").and_then(|()| std::fs::remove_file(&path))
}

fn text(checks: &[Finding]) -> String {
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

fn json(checks: &[Finding]) -> String {
    let rows = checks.iter().map(|check| {
        let state = match check.state {
            State::Good => "good",
            State::Bad => "bad",
            State::Absent => "absent",
        };
        format!(
            "  {{\"check\": {}, \"state\": \"{state}\", \"detail\": {}, \"advice\": {}}}",
            quoted::json(&check.name),
            quoted::json(&check.detail),
            quoted::json(&check.advice)
        )
    });
    format!("[\n{}\n]\n", rows.collect::<Vec<_>>().join(",\n"))
}
