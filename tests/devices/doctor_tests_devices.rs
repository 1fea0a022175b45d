//! `kymo doctor --selftest`: passes where everything is right, finds each fault that is planted,
//! says what is missing, and leaves one file.

use harness::{amd, fakes, gaudi, intel, kymo};
use std::process::{Command, Output};

/// Faults, and the check that must find each.
const PLANTED: [(&str, &str); 4] = [
    ("lost-kernel", "kernels"),
    ("wrong-stream", "streams"),
    ("swapped-arrow", "arrows"),
    ("shifted-clock", "times"),
];

struct Tested {
    output: Output,
    text: String,
    report: String,
}

fn selftest(vendor: &str, prepare: impl Fn(&mut Command), planted: &str) -> Tested {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.txt");
    let mut command = kymo::kymo();
    prepare(&mut command);
    command.args(["doctor", &format!("--selftest={vendor}"), "--report"]).arg(&report);
    let output = command.env("FAKE_PLANT", planted).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let report = std::fs::read_to_string(report).unwrap_or_default();
    Tested { output, text, report }
}

impl Tested {
    #[track_caller]
    fn passes(&self, what: &str) {
        assert!(!self.text.contains('✗'), "{what}:\n{}", self.text);
        assert_eq!(self.output.status.code(), Some(0), "{what}: {:?}", self.output);
        // Level Zero's work has no copies between devices, and Synapse says no directions.
        let copies: &[&str] = match what.split(' ').next() {
            Some("pti") => &["HtoD", "DtoH", "DtoD"],
            Some("synapse") => &["DtoD"],
            _ => &["HtoD", "DtoH", "DtoD", "PtoP"],
        };
        let others = ["kernels", "sets", "arrows", "times", "ranges     12", "losses"];
        for check in copies.iter().chain(&others) {
            assert!(self.text.contains(&format!("✓ {check}")), "{what}: {check} in {}", self.text);
        }
        assert!(self.text.contains("8, never mixed"), "{}", self.text);
    }

    #[track_caller]
    fn finds(&self, fault: &str, check: &str) {
        // Work that is read before the time that it says has no time at all, and is missing.
        let checks = if check == "times" { ["times", "kernels"] } else { [check; 2] };
        let is_wrong = |line: &str| checks.iter().any(|it| line.contains(&format!("✗ {it}")));
        let found = self.text.lines().any(is_wrong);
        assert!(found, "{fault}:\n{}", self.text);
        assert_eq!(self.output.status.code(), Some(1));
    }
}

#[test]
fn cuda_on_two_devices() {
    for version in ["12.6", "13.1"] {
        let machine = fakes::Machine::with(version).devices(2);
        let test = selftest("cuda", |command| machine.prepare(command), "");
        test.passes(version);
        // Recorded, and recorded while the program profiles itself.
        assert!(test.text.contains("✓ its own    488 kernels"), "{}", test.text);
        for part in
            ["== cuda results", "cuda.", ".sample.record.10.1 = ", "== cuda recorded: truth"]
        {
            assert!(test.report.contains(part), "no {part} in the report");
        }
        assert!(!test.report.contains("kymograph.host"), "whose machine it is");
    }
}

#[test]
fn faults_of_cuda_are_found() {
    let machine = fakes::Machine::with("12.6").devices(2);
    for (fault, check) in PLANTED {
        selftest("cuda", |command| machine.prepare(command), fault).finds(fault, check);
    }
}

#[test]
fn hip_on_two_devices() {
    for version in ["0.6", "1.3"] {
        let machine = amd::Machine::with(version).devices(2);
        let test = selftest("hip", |command| machine.prepare(command), "");
        test.passes(version);
        let said = "stream:P12ihipStream_t@";
        assert!(test.report.contains(said) && test.report.contains(".sample.agent.0.1 = "));
    }
}

#[test]
fn faults_of_hip_are_found() {
    let machine = amd::Machine::with("1.0").devices(2);
    for (fault, check) in PLANTED {
        selftest("hip", |command| machine.prepare(command), fault).finds(fault, check);
    }
}

#[test]
fn xpu_on_two_devices() {
    for version in ["0.13", "1.2"] {
        let machine = intel::Machine::with(version).devices(2);
        let test = selftest("xpu", |command| machine.prepare(command), "");
        test.passes(&format!("pti {version}"));
        assert!(test.text.contains("✓ its own    464 kernels"), "{}", test.text);
    }
}

#[test]
fn faults_of_xpu_are_found() {
    let machine = intel::Machine::with("1.2").devices(2);
    for (fault, check) in PLANTED {
        selftest("xpu", |command| machine.prepare(command), fault).finds(fault, check);
    }
}

#[test]
fn hpu_on_two_devices() {
    let machine = gaudi::Machine::with("new").devices(2);
    let test = selftest("hpu", |command| machine.prepare(command), "");
    test.passes("synapse");
    assert!(test.text.contains("✓ kernels    464"), "{}", test.text);
    for part in ["hpu.", ".sample.record.", "== hpu recorded: truth"] {
        assert!(test.report.contains(part), "no {part} in the report");
    }
}

#[test]
fn faults_of_hpu_are_found() {
    let machine = gaudi::Machine::with("new").devices(2);
    for (fault, check) in PLANTED {
        selftest("hpu", |command| machine.prepare(command), fault).finds(fault, check);
    }
}

#[test]
fn what_is_missing_is_said() {
    let empty = tempfile::tempdir().unwrap();
    let nothing = |command: &mut Command| {
        command.env("LD_LIBRARY_PATH", empty.path());
    };
    for (vendor, why) in [
        ("cuda", "no libcuda.so.1"),
        ("hip", "no libamdhip64.so.7 or"),
        ("xpu", "no libze_loader.so.1"),
        ("hpu", "no libSynapse.so"),
    ] {
        let test = selftest(vendor, nothing, "");
        assert!(test.text.contains(&format!("– nothing to test: {why}")), "{}", test.text);
        assert_eq!(test.output.status.code(), Some(1), "it was asked for");
    }
    let machine = fakes::Machine::with("12.6").fault("no-driver");
    let test = selftest("cuda", |command| machine.prepare(command), "");
    assert!(test.text.contains("– nothing to test: no device (cuInit: 100)"), "{}", test.text);
}
