//! The one file that a self-test leaves: what it found, and what it saw.

use super::super::Failure;
use super::check::facts;
use super::truth::Truth;
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::Trace;
use std::path::Path;

pub(super) struct Report(String);

impl Report {
    pub(super) fn new() -> Report {
        let mut report = Report(String::new());
        let version = env!("CARGO_PKG_VERSION");
        report.section("kymograph self-test", &format!("version {version}\n{}\n", system()));
        let names = ["CUDA", "CUPTI", "NVTX", "HIP", "HSA", "ROC", "ZE", "PTI", "XPTI", "SYCL"];
        let names = names.into_iter().chain(["HABANA", "LD_", "KYMOGRAPH"]);
        let names: Vec<&str> = names.collect();
        let set = std::env::vars().filter(|(key, _)| names.iter().any(|n| key.starts_with(n)));
        let set: String = set.map(|(key, value)| format!("{key}={value}\n")).collect();
        report.section("environment", &set);
        report
    }

    pub(super) fn section(&mut self, name: &str, text: &str) {
        self.0 += &format!("== {name}\n{}\n\n", text.trim_end());
    }

    /// What a trace says of itself: versions, paths, counts, and samples of records.
    pub(super) fn trace(
        &mut self,
        vendor: super::Vendor,
        step: &str,
        truth: &Truth,
        trace: &Trace,
    ) {
        let mut facts = facts(trace);
        facts.order_by(Ord::cmp);
        // The machine's name stays private.
        facts.retain(|(key, _)| !["kymograph.host", "kymograph.boot_id"].contains(&key.as_str()));
        let lines: String = facts.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        self.section(&format!("{} {step}: facts", vendor.name()), &lines);
        let devices = trace
            .devices
            .iter()
            .map(|(_, device)| format!("{} {}\n", device.number, trace.strings.get(device.name)));
        self.section(&format!("{} {step}: devices", vendor.name()), &devices.collect::<String>());
        self.section(&format!("{} {step}: truth", vendor.name()), &truth.to_text());
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        std::fs::write(path, &self.0)
            .map_err(|error| Failure(format!("{}: {error}", path.display())))
    }
}

/// The machine, as far as it matters.
fn system() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let driver = read("/proc/driver/nvidia/version");
    let release = read("/etc/os-release");
    let name = release.lines().find(|line| line.starts_with("PRETTY_NAME")).unwrap_or_default();
    format!("kernel {}{name}\n{driver}", kernel)
}
