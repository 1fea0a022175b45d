//! What `kymo doctor` says of AMD's devices on machines that have some, or should.

use amd::Machine;
use harness::{amd, kymo};

fn doctor(machine: &Machine, set: &[(&str, &str)]) -> String {
    let mut command = kymo::kymo();
    machine.prepare(&mut command);
    let output = command.envs(set.iter().copied()).arg("doctor").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(text.lines().any(|l| l.starts_with(line)), "no `{line}` in\n{text}");
    }
}

#[test]
fn a_machine_that_is_ready() {
    for (version, shown) in [("0.5", "0.5.0"), ("1.0", "1.0.0"), ("1.3", "1.3.0")] {
        let text = doctor(&Machine::with(version).devices(4), &[]);
        let sdk = format!("✓ rocprofiler-sdk {shown} (");
        says(&text, &[&sdk, "✓ AMD GPU        4 devices: kernels and copies"]);
    }
}

#[test]
fn what_is_missing_and_how_to_get_it() {
    let text = doctor(&Machine::without_rocprofiler(), &[]);
    says(&text, &["– AMD GPU "]);
    assert!(text.contains("install ROCm") || text.contains("install rocprofiler-sdk"), "{text}");

    let text = doctor(&Machine::with("0.4"), &[]);
    says(&text, &["✗ rocprofiler-sdk version 0.4.0"]);
    assert!(text.contains("of ROCm 6.3 or later"), "{text}");

    let text = doctor(&Machine::with("1.0").fault("no-agents"), &[]);
    says(&text, &["✓ rocprofiler-sdk", "– AMD GPU        no device that this user may open; "]);

    let text = doctor(&Machine::with("1.0").without("rocprofiler_create_buffer"), &[]);
    assert!(text.contains("has no rocprofiler_create_buffer; install"), "{text}");

    let text = doctor(&Machine::with("1.0").fault("errors"), &[]);
    says(&text, &["✗ rocprofiler-sdk version unknown"]);
}

#[test]
fn an_environment_that_keeps_tools_away() {
    let machine = Machine::with("1.0");
    let set = [
        ("ROCPROFILER_REGISTER_ENABLED", "0"),
        ("ROCP_TOOL_LIBRARIES", "/nonexistent/tool.so"),
        ("HSA_TOOLS_LIB", "libroctracer.so"),
    ];
    let text = doctor(&machine, &set);
    says(
        &text,
        &[
            "✗ ROCm hook      ROCPROFILER_REGISTER_ENABLED is 0; ",
            "✗ ROCm hook      ROCP_TOOL_LIBRARIES has /nonexistent/tool.so, which is not there; ",
            "– ROCm hook      HSA_TOOLS_LIB is libroctracer.so; ",
        ],
    );
    assert!(!doctor(&machine, &[]).contains("ROCm hook"));
}
