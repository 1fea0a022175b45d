//! `kymo doctor --selftest`: known work on the devices of a vendor, done alone, recorded, and
//! recorded beside another profiler, and compared with what the traces say of it.
//!
//! ```text
//!  kymo ─► kymo __selftest VENDOR      the work (workload, gpu), and its truth (truth)
//!       ─► kymo record … the same ─► trace ─► compared with the truth (check)
//!       ─► one file with all that was seen (report)
//! ```
//! The work is done in processes of their own, by the vendor's libraries as programs use them:
//! nothing is compiled before, and nothing of ours takes part.

mod annotate;
mod check;
mod client;
mod devices;
mod gpu;
mod habana;
mod keys;
mod load;
mod pti;
mod report;
mod spirv;
mod truth;
mod workload;
mod zero;

use super::{Failure, files};
use check::Check;
use clap::{Args, ValueEnum};
use kymograph_backends::vendors::VENDORS;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use truth::Truth;

/// Whose devices are tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Vendor {
    /// NVIDIA, by CUDA's driver.
    Cuda,
    /// AMD, by HIP.
    Hip,
    /// Intel GPUs, by Level Zero.
    Xpu,
    /// Intel Gaudi, by Synapse.
    Hpu,
}

impl Vendor {
    const ALL: [Vendor; 4] = [Vendor::Cuda, Vendor::Hip, Vendor::Xpu, Vendor::Hpu];

    /// As it is written on the command line, and as the facts of traces begin.
    pub(super) fn name(self) -> &'static str {
        // Vendors stand in the same order in the table.
        VENDORS[self as usize].names.key
    }
}

/// Does the work of a self-test, and writes down what it was.
#[derive(Args)]
pub(super) struct Work {
    vendor: Vendor,
    /// Where the truth is written.
    truth: PathBuf,
    /// Uses the vendor's profiler as well, as a program that profiles itself does.
    #[arg(long)]
    client: bool,
}

/// The exit status of work that found no device to be done on.
const NOTHING: u8 = 3;

impl Work {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match workload::run(self.vendor, self.client) {
            Ok(done) => {
                std::fs::write(&self.truth, done.to_text())?;
                println!("devices {} hash {:016x}", done.devices, done.hash);
                Ok(ExitCode::SUCCESS)
            }
            Err(devices::Stop::Missing(why)) => {
                println!("{why}");
                Ok(ExitCode::from(NOTHING))
            }
            Err(devices::Stop::Failed(why)) => Err(Failure(why)),
        }
    }
}

/// A way in which the work is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Alone,
    Recorded,
    /// Recorded, while the program profiles itself.
    Shared,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Alone => "alone",
            Step::Recorded => "recorded",
            Step::Shared => "recorded, and by the program itself",
        }
    }
}

/// What came of a vendor.
enum Outcome {
    /// There is nothing to test, and why.
    Missing(String),
    Tested(Vec<(&'static str, Vec<Check>)>),
}

/// Tests one vendor, or all that this machine has, prints a table, and leaves a report. Fails
/// if a check does, or if the vendor that was asked for is not there.
pub(super) fn run(only: Option<Vendor>, report: &Path) -> Result<ExitCode, Failure> {
    let folder = Scratch::new()?;
    let mut page = report::Report::new();
    let mut failed = false;
    for vendor in Vendor::ALL.into_iter().filter(|vendor| only.is_none_or(|only| only == *vendor)) {
        let outcome = test(vendor, &folder.0, &mut page)?;
        failed |= match &outcome {
            Outcome::Missing(_) => only.is_some(),
            Outcome::Tested(steps) => {
                steps.iter().flat_map(|(_, checks)| checks).any(|check| !check.good)
            }
        };
        let text = table(vendor, &outcome);
        page.section(&format!("{} results", vendor.name()), &text);
        print(&text);
    }
    page.write(report)?;
    print(&format!("\nAll that was seen is in {}: one file to send.\n", report.display()));
    Ok(ExitCode::from(u8::from(failed)))
}

fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn test(vendor: Vendor, folder: &Path, page: &mut report::Report) -> Result<Outcome, Failure> {
    let (alone, truth) = work(vendor, Step::Alone, folder)?;
    let Some(truth) = truth else {
        let said = String::from_utf8_lossy(&alone.stdout);
        if alone.status.code() == Some(NOTHING.into()) {
            return Ok(Outcome::Missing(said.trim().to_owned()));
        }
        let why = ending(&alone);
        let checks =
            vec![Check::bad("work", format!("it does not work without a recording: {why}"))];
        return Ok(Outcome::Tested(vec![(Step::Alone.name(), checks)]));
    };
    let done = format!("{} pieces of work on {} devices", truth.ops.len(), truth.devices);
    let mut steps = vec![(Step::Alone.name(), vec![Check::good("work", done)])];
    for step in [Step::Recorded, Step::Shared] {
        if step == Step::Shared && !client::exists(vendor) {
            continue;
        }
        let (output, truth) = work(vendor, step, folder)?;
        if step == Step::Shared && truth.as_ref().is_some_and(|truth| !truth.was_shared(vendor)) {
            continue;
        }
        let mut checks = vec![same_ending(&alone, &output)];
        let trace = folder.join(trace_name(vendor, step));
        match (truth, files::read(&trace, None)) {
            (Some(truth), Ok(trace)) => {
                checks.extend(check::all(vendor, &truth, &trace));
                page.trace(vendor, step.name(), &truth, &trace);
            }
            (None, _) => checks.push(Check::bad("work", ending(&output))),
            (_, Err(Failure(why))) => checks.push(Check::bad("trace", why)),
        }
        steps.push((step.name(), checks));
    }
    Ok(Outcome::Tested(steps))
}

fn trace_name(vendor: Vendor, step: Step) -> String {
    format!("{}-{}.pftrace", vendor.name(), u8::from(step == Step::Shared))
}

/// Does the work, and reads what it says that it did.
fn work(vendor: Vendor, step: Step, folder: &Path) -> Result<(Output, Option<Truth>), Failure> {
    let truth = folder.join("truth");
    let _ = std::fs::remove_file(&truth);
    let me = std::env::current_exe()?;
    let mut command = Command::new(&me);
    if step != Step::Alone {
        command.args(["record", "--quiet", "--set", "SAMPLES=1"]);
        if vendor == Vendor::Hpu {
            // It says there which stream work was of.
            command.args(["--set", "ALL_ARGS=1"]);
        }
        command.arg("--output");
        command.arg(folder.join(trace_name(vendor, step))).arg("--").arg(&me);
    }
    command.args(["__selftest", vendor.name()]).arg(&truth);
    if step == Step::Shared {
        command.arg("--client");
    }
    client::prepare(vendor, step == Step::Shared, &mut command);
    let output = command.output()?;
    let text = std::fs::read_to_string(&truth).ok();
    let truth = text.filter(|_| output.status.success()).and_then(|text| Truth::parse(&text));
    Ok((output, truth))
}

/// The program ends as it does without a recording, and prints the same.
fn same_ending(alone: &Output, recorded: &Output) -> Check {
    let same = alone.status == recorded.status && alone.stdout == recorded.stdout;
    match same {
        true => Check::good("output", "the same, and the same exit status"),
        false => {
            Check::bad("output", format!("alone: {}; now: {}", ending(alone), ending(recorded)))
        }
    }
}

fn ending(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    let said = [text(&output.stdout), text(&output.stderr)];
    let said: Vec<_> = said.iter().filter(|text| !text.is_empty()).map(String::as_str).collect();
    format!("{} ({})", output.status, said.join("; "))
}

fn table(vendor: Vendor, outcome: &Outcome) -> String {
    let mut text = format!("{}\n", vendor.name());
    match outcome {
        Outcome::Missing(why) => text += &format!("– nothing to test: {why}\n"),
        Outcome::Tested(steps) => {
            for (step, checks) in steps {
                text += &format!("  {step}\n");
                for check in checks {
                    let mark = if check.good { '✓' } else { '✗' };
                    text += &format!("  {mark} {:<10} {}\n", check.name, check.detail);
                }
            }
        }
    }
    text
}

/// A folder that goes when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let name = format!("kymo-selftest-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
