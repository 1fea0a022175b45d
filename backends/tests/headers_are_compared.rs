//! `tests/headers` finds a field that lies elsewhere, a struct of another size, and a number that
//! changed. The headers are made up: those of vendors are fetched by who compares them.

use harness::fakes;

use std::path::Path;
use std::process::Command;

const HEADER: &str = "\
    typedef enum { CUPTI_ACTIVITY_KIND_RUNTIME = 5, CUPTI_ACTIVITY_KIND_MEMCPY = 1 } Kind;\n\
    typedef struct { unsigned kind; unsigned cbid; unsigned long start, end; \
    unsigned processId, threadId, correlationId, returnValue; } CUpti_ActivityAPI;\n";

/// What the script says of this header, and whether it is content.
fn compare(header: &str) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cupti_activity.h"), header).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/headers");
    let mut command = Command::new(script);
    command.env("LAYOUTS", fakes::example("layouts")).arg(folder.path());
    let output = command.output().expect("python3 and a C++ compiler");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text + &String::from_utf8_lossy(&output.stderr), output.status.success())
}

#[test]
fn differences_are_found() {
    let (text, good) = compare(HEADER);
    assert!(
        good && text.contains("1 structs, 2 enumerators, 7 comparisons, 0 differences"),
        "{text}"
    );
    let finds = |from: &str, to: &str, what: &str| {
        let (text, good) = compare(&HEADER.replace(from, to));
        assert!(!good && text.contains(what), "{what} is not in {text}");
    };
    finds(
        "processId, threadId",
        "threadId, processId",
        "CUpti_ActivityAPI.threadId is at 24, not at 28",
    );
    finds("threadId, ", "thread, ", "CUpti_ActivityAPI.threadId is missing, not at 28");
    finds(
        ", threadId, correlationId, returnValue",
        "",
        "has 32 bytes, of which no layout is known",
    );
    finds("MEMCPY = 1", "MEMCPY = 2", "CUPTI_ACTIVITY_KIND_MEMCPY is 2, not 1");
    let (text, good) = compare("#error unknown\n");
    assert!(!good && text.contains("not compared"), "{text}");
}
