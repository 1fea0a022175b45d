//! C and C++ programs record through `include/kymograph.h`, and what they recorded is in
//! the trace, no more and no less.

use harness::{kymo, native};

#[cfg(feature = "inject")]
use std::path::Path;
use std::process::Command;

use oracle::Trace;

fn record(compiler: &str, standard: &str, source: &str) -> (Trace, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile(compiler, standard, source, folder.path());
    let trace = folder.path().join("t.pftrace");
    let output = native::run(&program, &trace);
    (Trace::open(&trace), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn what_c_records_is_in_the_trace() {
    let (trace, events) = record("cc", "-std=c11", "tests/data/c/everything.c");
    trace.assert_clean();
    assert_eq!(
        trace.table(
            "SELECT s.name, s.category AS category, s.depth, s.dur > 0 AS lasts, \
                    coalesce(p.name, '') AS inside, coalesce(t.name, k.name) AS place \
             FROM slice s LEFT JOIN slice p ON p.id = s.parent_id \
             JOIN track k ON k.id = s.track_id \
             LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t USING (utid) \
             ORDER BY s.ts"
        ),
        "name      category  depth  lasts  inside  place\n\
         read      io        0      1              the main one\n\
         inner     app       1      1      read    the main one\n\
         mark      app       2      0      inner   the main one\n\
         inner     app       1      1      read    the main one\n\
         mark      app       2      0      inner   the main one\n\
         outer     app       0      1              the main one\n\
         in outer  app       1      0      outer   the main one\n\
         in outer  app       1      0      outer   the main one\n\
         heard     noise     1      1      outer   the main one\n\
         read      io        0      1              requests\n\
         write     io        0      1              requests\n\
         lone      io        0      1              io\n\
         read      io        0      0              retries\n\
         run       jobs      0      1              worker\n"
    );
    let counters = trace.one_i64("SELECT count(*) FROM counter");
    let slices = trace.one_i64("SELECT count(*) FROM slice");
    assert_eq!(events.trim(), (slices + counters).to_string());
    assert_eq!(
        trace.strings("SELECT p.name FROM process p WHERE pid > 0"),
        ["everything"],
        "the name that the program gave itself"
    );
}

#[test]
fn arguments_arrows_and_counters_arrive_as_they_were_given() {
    let (trace, _) = record("cc", "-std=c11", "tests/data/c/everything.c");
    assert_eq!(
        trace.table(
            "SELECT a.flat_key AS key, a.display_value AS value, a.value_type AS type \
             FROM slice s JOIN args a USING (arg_set_id) \
             WHERE s.name = 'read' AND a.flat_key LIKE 'debug.%' \
               AND s.track_id IN (SELECT id FROM thread_track) ORDER BY a.id"
        ),
        "key           value                 type\n\
         debug.bytes   18446744073709551615  uint\n\
         debug.cached  true                  bool\n\
         debug.ratio   0.25                  real\n\
         debug.path    a/b                   string\n\
         debug.at      0xabc0                pointer\n\
         debug.delta   -7                    int\n\
         debug.kind    bytes                 string\n\
         debug.got     12                    int\n\
         debug.how     well                  string\n"
    );
    assert_eq!(
        trace.table(
            "SELECT o.name AS source, i.name AS target, i.category AS category \
             FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in"
        ),
        "source  target  category\nread    run     jobs\n"
    );
    assert_eq!(
        trace.table(
            "SELECT t.name, t.unit, c.value FROM counter c JOIN counter_track t \
             ON t.id = c.track_id ORDER BY c.ts"
        ),
        "name    unit   value\n\
         queued  bytes  4096.0\n\
         queued  bytes  -1.0\n\
         load    NULL   0.5\n\
         steps   count  1.0\n"
    );
    assert_eq!(
        trace.table(
            "SELECT t.name, p.name AS parent, extract_arg(s.arg_set_id, 'debug.status') AS status \
             FROM track t JOIN slice s ON s.track_id = t.id \
             LEFT JOIN track p ON p.id = t.parent_id \
             WHERE t.name IN ('requests', 'retries') ORDER BY s.ts"
        ),
        "name      parent    status\n\
         requests  NULL      -3\n\
         requests  NULL      NULL\n\
         retries   requests  NULL\n"
    );
}

#[test]
fn wrong_calls_are_harmless_and_explained() {
    let (trace, complaints) = record("cc", "-std=c11", "tests/data/c/misuse.c");
    trace.assert_clean();
    assert_eq!(complaints.lines().count(), 5, "one line each: {complaints}");
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert_eq!(
        trace.table(
            "SELECT '[' || name || ']' AS name, count(*) AS n FROM slice WHERE length(name) < 100 \
             GROUP BY name ORDER BY name"
        ),
        "name           n\n\
         [(unnamed)]    4\n\
         []             1\n\
         [deep]         20000\n\
         [handler]      100\n\
         [huge count]   1\n\
         [interrupted]  100\n\
         [last]         1\n\
         [many]         1\n\
         [strange]      1\n\
         [\u{fffd}\u{fffd}]           1\n"
    );
    // Nothing was left open around it.
    assert_eq!(trace.one_i64("SELECT depth FROM slice WHERE name = 'last'"), 0);
    assert_eq!(
        trace.one_i64(
            "SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id \
             WHERE s.name = 'handler' AND p.name = 'interrupted'"
        ),
        100
    );
    let args = |name: &str| {
        trace.one_i64(&format!(
            "SELECT count(*) FROM slice s JOIN args a USING (arg_set_id) \
             WHERE s.name = '{name}' AND a.key LIKE 'debug.%'"
        ))
    };
    assert_eq!((args("many"), args("huge count"), args("strange")), (32, 32, 2));
}

#[test]
fn scopes_of_cpp_end_with_their_blocks() {
    let (trace, _) = record("c++", "-std=c++11", "tests/data/c/scopes.cc");
    trace.assert_clean();
    assert_eq!(
        trace.table(
            "SELECT s.name, coalesce(p.name, '') AS inside, count(*) AS n FROM slice s \
             LEFT JOIN slice p ON p.id = s.parent_id GROUP BY 1, 2 ORDER BY 1"
        ),
        "name    inside  n\n\
         caught  handle  3\n\
         handle  step    3\n\
         step            3\n\
         throws  handle  3\n"
    );
}

#[cfg(feature = "inject")]
#[test]
fn under_kymo_record_a_program_that_records_itself_joins_in() {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "examples/hello.c", folder.path());
    let (trace, own) = (folder.path().join("t.pftrace"), folder.path().join("own.pftrace"));
    let output = kymo::kymo()
        .args(["record", "-o"])
        .args([&trace, Path::new("--"), &program, &own])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!own.exists());
    let trace = Trace::open(&trace);
    trace.assert_clean();
    assert_eq!(trace.strings("SELECT name FROM slice"), ["greet", "print", "print", "print"]);
}

#[test]
fn sessions_have_a_schedule_or_are_opened_and_paused() {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "tests/data/c/sessions.c", folder.path());
    let output = native::run(&program, &folder.path().join("schedule.pftrace"));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "ready schedule.pftrace 0\nready schedule.2.pftrace 0\n2 traces\n"
    );
    for name in ["schedule.pftrace", "schedule.2.pftrace"] {
        let trace = Trace::open(folder.path().join(name));
        trace.assert_clean();
        let steps = "SELECT COUNT(*) FROM slice WHERE name GLOB 'ProfilerStep#*' AND dur > 0";
        assert_eq!(trace.one_i64(steps), 2);
    }
    let window = folder.path().join("window.pftrace");
    native::run(&program, &window);
    let trace = Trace::open(window);
    trace.assert_clean();
    assert_eq!(trace.strings("SELECT name FROM slice ORDER BY ts"), ["inside", "resumed"]);
    let colour = "SELECT str_value FROM metadata WHERE name GLOB '*.colour'";
    assert_eq!(trace.strings(colour), ["blue"]);
}

#[test]
fn the_header_stands_alone_in_every_dialect() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, language, standard, more) in [
        ("cc", "c", "-std=c11", "-DKYMO_OFF"),
        ("cc", "c", "-std=c17", "-O2"),
        ("c++", "c++", "-std=c++11", "-DKYMO_OFF"),
        ("c++", "c++", "-std=c++20", "-O2"),
    ] {
        let source = folder.path().join("alone.h.in");
        std::fs::write(&source, "#include <kymograph.h>\n#include <kymograph.h>\n").unwrap();
        let output = Command::new(compiler)
            .args(["-x", language, standard, more, "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(["-fsyntax-only", "-I"])
            .arg(harness::root().join("include"))
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_size_alone_makes_a_struct_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("sizes.cc");
    let text = "#include <kymograph.h>\nint main() {\n  kymo_summary a = {sizeof a};\n  \
                kymo_schedule b = {sizeof b};\n  return a.discarded + b.repeat;\n}\n";
    std::fs::write(&source, text).unwrap();
    for standard in ["-std=c++14", "-std=c++17", "-std=c++20"] {
        let output = Command::new("c++")
            .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"])
            .arg(harness::root().join("include"))
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let header = std::fs::read_to_string(harness::root().join("include/kymograph.h")).unwrap();
    let library = native::library_folder().join("libkymograph.so");
    let exported = exported(&library);
    for name in &exported {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
    // Declarations start at the left margin or after a type; inline functions end in `_`
    // or have a body, and those are not exported.
    let declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#', '}']) && !line.starts_with("static"))
        .filter_map(|line| line.split_once('(').map(|(before, _)| before))
        .filter_map(|before| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("kymo_"))
        .collect();
    assert!(declared.len() > 20, "{declared:?}");
    for name in declared {
        assert!(exported.iter().any(|e| e == name), "{name} is not exported");
    }
}

/// The `kymo_*` symbols of a library; any other must be one by which programs find us.
fn exported(library: &Path) -> Vec<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    let hooks = [
        "InitializeInjection",
        "InitializeInjectionNvtx2",
        "InitializeInjectionNvtxExtension",
        "__itt_api_init",
        "__lsan_default_suppressions",
        "__tsan_default_suppressions",
        "xptiTraceInit",
        "xptiTraceFinish",
        "zeInit",
        "zeInitDrivers",
        "rocprofiler_configure",
        "rocprofiler_register_library_api_table",
        "synInitialize",
        "synDestroy",
        "synDeviceAcquire",
        "synDeviceAcquireByDeviceType",
        "synDeviceAcquireByModuleId",
        "synDeviceRelease",
        "_exit",
        "_Exit",
        "execve",
        "execv",
        "execvp",
        "execvpe",
        "fexecve",
        // What PyTorch's allocators call (src/inject/memory.rs).
        "_ZN3c1022memoryProfilingEnabledEv",
        "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
        "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    ];
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.rsplit(' ').next());
    let (ours, others): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("kymo_"));
    for name in others {
        // `cupti…`, `pti…`, `roctx…`: what a program under us calls of those (src/inject/).
        let families = ["cupti", "pti", "roctx"];
        let hook = hooks.contains(&name) || families.iter().any(|start| name.starts_with(start));
        assert!(hook, "{name} should not be exported");
    }
    ours.into_iter().map(str::to_owned).collect()
}
