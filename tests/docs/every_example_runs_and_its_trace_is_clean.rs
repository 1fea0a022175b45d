//! What the examples show is true.

use harness::native;
use std::path::{Path, PathBuf};
use std::process::Command;

use oracle::Trace;

/// An example that was built with this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let program = profile.join("examples").join(name);
    if !program.exists() {
        // `cargo test --test …` builds no examples. The same features, or else cargo would
        // build another library in the place of the one that is being tested.
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(harness::root()).args(["build", "--examples", "--no-default-features"]);
        for (on, feature) in [
            (cfg!(feature = "cli"), "cli"),
            (cfg!(feature = "inject"), "inject"),
            (cfg!(feature = "tracing"), "tracing"),
        ] {
            if on {
                cargo.args(["--features", feature]);
            }
        }
        assert!(cargo.status().unwrap().success());
    }
    program
}

/// Runs a program that writes a trace, and loads that.
fn run(program: &Path) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    native::run(program, &path);
    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL"), 0);
    trace
}

const ON_THREADS: &str = "SELECT t.name AS thread, s.name, coalesce(p.name, '') AS inside, \
    count(*) AS n FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) \
    LEFT JOIN slice p ON p.id = s.parent_id GROUP BY 1, 2, 3 ORDER BY min(s.ts)";
const ON_ROWS: &str = "SELECT t.name AS row, coalesce(p.name, '') AS below, s.name, count(*) AS n \
    FROM slice s JOIN process_track t ON t.id = s.track_id \
    LEFT JOIN track p ON p.id = t.parent_id GROUP BY 1, 2, 3 ORDER BY min(s.ts)";

#[test]
fn hello() {
    let trace = run(&example("hello"));
    assert_eq!(
        trace.table(ON_THREADS),
        "thread  name   inside  n\n\
         hello   greet          1\n\
         hello   print  greet   3\n"
    );
}

#[test]
fn hello_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "examples/hello.c", folder.path());
    let trace = run(&program);
    assert_eq!(
        trace.table(ON_THREADS),
        "thread  name   inside  n\n\
         hello   greet          1\n\
         hello   print  greet   3\n"
    );
    assert_eq!(trace.strings("SELECT value FROM counter ORDER BY ts"), ["1.0", "2.0", "3.0"]);
}

#[test]
fn threads_and_flows() {
    let trace = run(&example("threads_and_flows"));
    assert_eq!(
        trace.table(ON_THREADS),
        "thread           name          inside  n\n\
         threads_and_flo  submit                10\n\
         worker           run                   10\n\
         worker           no more jobs          1\n"
    );
    let arrows = "SELECT count(*) FROM flow f JOIN slice o ON o.id = f.slice_out \
        JOIN slice i ON i.id = f.slice_in WHERE o.name = 'submit' AND i.name = 'run' \
        AND extract_arg(o.arg_set_id, 'debug.number') = extract_arg(i.arg_set_id, 'debug.number')";
    assert_eq!(trace.one_i64(arrows), 10);
    let primes =
        "SELECT sum(extract_arg(arg_set_id, 'debug.primes')) FROM slice WHERE name = 'run'";
    assert_eq!(trace.one_i64(primes), 6690);
}

#[test]
fn counters_and_tracks() {
    let trace = run(&example("counters_and_tracks"));
    assert_eq!(
        trace.table(ON_ROWS),
        "row      below  name   n\n\
         frames   game   frame  5\n\
         physics  game   step   5\n\
         frames   game   vsync  5\n"
    );
    assert_eq!(
        trace.table(
            "SELECT t.name, t.unit, count(*) AS n, max(c.value) AS most FROM counter c \
             JOIN counter_track t ON t.id = c.track_id GROUP BY 1 ORDER BY 1"
        ),
        "name  unit   n  most\nheap  bytes  5  31744.0\nload  NULL   5  0.8\n"
    );
    // `frames` comes before `physics`, which was made first.
    assert_eq!(
        trace.table(
            "SELECT t.name, extract_arg(t.source_arg_set_id, 'sibling_order_rank') AS rank \
             FROM process_track t WHERE t.name IN ('frames', 'physics') ORDER BY rank"
        ),
        "name     rank\nframes   1\nphysics  2\n"
    );
}

#[test]
fn async_ranges() {
    let trace = run(&example("async_ranges"));
    assert_eq!(trace.table(ON_ROWS), "row       below  name  n\nrequests         GET   8\n");
    // They all overlapped, and each kept its own arguments.
    assert_eq!(trace.one_i64("SELECT count(DISTINCT track_id) FROM slice"), 8);
    let right = "SELECT count(*) FROM slice WHERE extract_arg(arg_set_id, 'debug.status') = 200 \
        AND extract_arg(arg_set_id, 'debug.cached') = (extract_arg(arg_set_id, 'debug.id') % 2 = 0)";
    assert_eq!(trace.one_i64(right), 8);
}

#[test]
fn categories() {
    let trace = run(&example("categories"));
    assert_eq!(
        trace.table("SELECT category, name, count(*) AS n FROM slice GROUP BY 1, 2"),
        "category       name   n\nrender         frame  30\nrender.detail  part   30\n"
    );
    let parts = "SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id \
        WHERE s.name = 'part' AND extract_arg(p.arg_set_id, 'debug.number') BETWEEN 10 AND 19";
    assert_eq!(trace.one_i64(parts), 30);
}

#[test]
fn own_sink() {
    let trace = run(&example("own_sink"));
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name = 'work'"), 100);
}

#[cfg(feature = "tracing")]
#[test]
fn tracing_layer() {
    let trace = run(&example("tracing_layer"));
    assert_eq!(
        trace.table(
            "SELECT s.name, coalesce(p.name, '') AS inside FROM slice s \
             LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts"
        ),
        "name     inside\n\
         request\n\
         parse    request\n\
         parsed   parse\n\
         request\n\
         reply    request\n\
         sent     reply\n"
    );
    // From the slice that is the cause to what follows from it, not to the next of its own.
    assert_eq!(
        trace.table(
            "SELECT o.name AS source, i.name AS target FROM flow f \
             JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in"
        ),
        "source   target\nrequest  reply\n"
    );
}

#[test]
fn none_is_missing_here() {
    let names = std::fs::read_dir(harness::root().join("examples")).unwrap();
    let this = include_str!("every_example_runs_and_its_trace_is_clean.rs");
    // A folder is a crate of its own.
    for name in names.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let stem = name.file_stem().unwrap().to_str().unwrap();
        assert!(
            this.contains(&format!("\"{stem}\"")) || this.contains(&format!("{stem}.c")),
            "{stem}"
        );
    }
}
