//! The report that a self-test leaves on a machine with devices is what the fakes need to be those
//! devices: they hand its records over, and what is read of them is what they say. Reports here are
//! of the fakes themselves, of each vendor and version, until somebody sends one of a real device;
//! one of an H200 is in `devices/nvidia/a_program_is_recorded_whole.rs`.

use harness::{amd, gaudi, intel, kymo};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::nvidia::Recorded;

const OWN: &str = "kernel own dur=1us\nsync\n";

/// Lets a device test itself; the report is in `folder`.
fn report(folder: &Path, vendor: &str, prepare: impl Fn(&mut Command)) -> PathBuf {
    let report = folder.join("report.txt");
    let mut command = kymo::kymo();
    prepare(&mut command);
    command.args(["doctor", &format!("--selftest={vendor}"), "--report"]).arg(&report);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    report
}

/// How long records took, where their kinds have times at these places: beginning, then end.
fn durations(report: &Path, kinds: &[(&str, usize)]) -> Vec<u64> {
    let text = std::fs::read_to_string(report).unwrap();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains(".sample.record.")) {
        let (key, value) = line.split_once(" = ").unwrap();
        let hex = value.split_once(':').unwrap().1;
        let word = |at: usize| {
            let byte = |n: usize| u64::from_str_radix(&hex[2 * (at + n)..][..2], 16).unwrap();
            (0..8).map(|n| byte(n) << (8 * n)).sum::<u64>()
        };
        let at = kinds.iter().find(|(kind, _)| key.contains(&format!(".record.{kind}.")));
        found.extend(at.map(|(_, at)| word(at + 8) - word(*at)));
    }
    found.sort_unstable();
    assert!(!found.is_empty());
    found
}

#[track_caller]
fn says(recorded: &Recorded, expected: &[u64], vendor: &str) {
    recorded.ended(0);
    recorded.trace.assert_clean();
    let durations = "SELECT dur FROM gpu_slice WHERE name != 'own' ORDER BY dur";
    let found = recorded.trace.rows(durations).into_iter();
    let found: Vec<_> = found.map(|row| row[0].as_i64().unwrap() as u64).collect();
    assert_eq!(found, expected, "{vendor}");
    let lost = |(key, value): &(&String, &String)| key.contains(".lost.") && *value != "0";
    let lost: Vec<_> = recorded.metadata.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{vendor}: {lost:?}");
}

/// A name, as the trace has it.
fn has(recorded: &Recorded, name: &str) -> bool {
    let named = format!("SELECT count(*) FROM gpu_slice WHERE name = '{name}'");
    recorded.trace.one_i64(&named) > 0
}

#[test]
fn of_amd() {
    for (version, copies, kernels) in
        [("0.5", "10", "11"), ("1.0", "10", "11"), ("1.3", "10", "11")]
    {
        let folder = tempfile::tempdir().unwrap();
        let machine = amd::Machine::with(version).devices(2);
        let report = report(folder.path(), "hip", |command| machine.prepare(command));
        let expected = durations(&report, &[(copies, 40), (kernels, 40)]);
        let machine = machine.fault(&format!("replay:{}", report.display()));
        let recorded = machine.record(OWN, &[]);
        says(&recorded, &expected, version);
        assert!(has(&recorded, "kernel_of_the_report"));
    }
}

#[test]
fn of_intel() {
    for version in ["0.13", "1.2"] {
        let folder = tempfile::tempdir().unwrap();
        let machine = intel::Machine::with(version).devices(2);
        let report = report(folder.path(), "xpu", |command| machine.prepare(command));
        let expected = durations(&report, &[("1", 104), ("8", 96), ("9", 88), ("10", 128)]);
        let machine = machine.fault(&format!("replay:{}", report.display()));
        let recorded = machine.record(OWN, &[]);
        says(&recorded, &expected, version);
        assert!(has(&recorded, "name_of_the_report"));
    }
}

#[test]
fn of_gaudi() {
    let folder = tempfile::tempdir().unwrap();
    let machine = gaudi::Machine::with("new").devices(1);
    let report = report(folder.path(), "hpu", |command| machine.prepare(command));
    let whole = machine.record(OWN, &[]);
    let machine = machine.fault(&format!("replay:{}", report.display()));
    let recorded = machine.record(OWN, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert!(has(&whole, "own") && !has(&recorded, "own"), "only what the report says");
    // Which engines of a kind are in the report depends on which thread came first.
    let work = "SELECT substr(t.name, 1, instr(t.name, ' ') - 1) AS engine, s.name, count(*) AS n
                FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
                GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(
        recorded.trace.table(work),
        "engine  name    n\n\
         PDMA    memcpy  2\n\
         TPC     memcpy  2\n"
    );
}
