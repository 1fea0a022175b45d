//! `KINETO.md` lists what Kineto's tests assert of its control, and the tests that do so
//! here: each of them exists. And what none of these is about.

use control::{Place, Program, open};
use harness::control;
use std::path::Path;

#[test]
fn each_test_in_the_list_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(root.join("tests/KINETO.md")).unwrap();
    let mut rows = 0;
    for row in list.lines().filter(|line| line.starts_with('|') && line.contains('`')) {
        let [.., file, _, test, _] = row.split('`').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let text =
            std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let place = text.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{row}"));
        let attributes = text[..place].trim_end().lines().last().unwrap_or_default();
        assert!(attributes.trim().starts_with("#["), "{test} in {file} is no test");
        rows += 1;
    }
    assert!(rows > 30, "{rows}");
}

/// AsyncActivityProfilerHandlerTest: MetadataJsonFormatingTest and
/// MetadataEnvironmentVariableTest.
#[test]
fn metadata_json_is_valid_and_names_the_job() {
    let place = Place::new();
    let job = "a \"job\"\nof\\two lines";
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut command = place.kymo(&["record", "--wait", "--"]);
    command.arg(oracle::venv_python()).arg(data.join("control/steps.py"));
    command.env("PT_PROFILER_JOB_NAME", job).env("PT_PROFILER_JOB_VERSION", "7");
    let program = Program::start(command);
    let said = place.run(&["trigger", "--duration", "50ms", "-o", "t.pftrace"]);
    assert!(said.good, "{said:?}");
    assert!(program.end());
    let trace = open(&place.path("t.pftrace"));
    let named = "SELECT COUNT(*) FROM metadata WHERE name GLOB '*PT_PROFILER_JOB_NAME' \
                 AND str_value LIKE 'a \"job\"%of\\two lines'";
    assert_eq!(trace.one_i64(named), 1);
    let said = place.run(&["convert", "t.pftrace", "t.json"]);
    assert!(said.good, "{said:?}");
    let json = std::fs::read(place.path("t.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["PT_PROFILER_JOB_NAME"], job);
    assert_eq!(json["PT_PROFILER_JOB_VERSION"], "7");
}
