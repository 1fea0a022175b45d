//! The same work through Kymograph and through other recorders: a scope with a static name
//! and one `u64`, on one thread and on two. Each case runs in a process of its own, so that
//! nobody's threads disturb anybody else. See `docs/BENCHMARKS.md`.
//!
//! `cargo run --release [-- NAME…]`

#[path = "../../measure/cores.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod cores;
#[path = "../../measure/floor.rs"]
mod floor;
#[path = "../../../converters/tests/recorders/src/session.rs"]
mod session;
#[path = "../../measure/turns.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod turns;

mod fastrace;
mod kymo;
mod micromegas;
mod perfetto_recorder;
mod perfetto_sdk;
mod tracing_chrome;
mod work;

use std::process::Command;

use work::{Outcome, Work};

/// A recorder, what to know about its row, and how it does the work.
type Peer = (&'static str, &'static str, fn(&Work) -> Outcome);

const PEERS: &[Peer] = &[
    ("floor", "two counter readings, 32 bytes stored, nothing read", floor),
    ("kymograph", "`scope!`, into a file while it runs", kymo::run),
    ("micromegas-tracing 0.33.0, no argument", "no file: null sink", micromegas::plain),
    ("micromegas-tracing 0.33.0", "argument as text; no file: null sink", micromegas::with_arg),
    ("perfetto-recorder 0.3.3", "`fastant`; the file is made at the end", perfetto_recorder::run),
    ("fastrace 0.7.19", "argument as text; no file: null reporter", fastrace::run),
    ("perfetto-sdk 1.2.1", "in-process backend; the file is made at the end", perfetto_sdk::run),
    ("tracing-chrome 0.7.2", "JSON, into a file while it runs", tracing_chrome::run),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, threads] = args.as_slice()
        && flag == "--case"
    {
        let (_, _, run) = PEERS.iter().find(|peer| peer.0 == name).expect("a name of the table");
        return run(&Work::new(threads.parse().expect("a number"))).print();
    }
    println!("\n### The same work through other recorders\n");
    println!(
        "| recorder | 1 thread: best ns | median ns | 2 threads: best ns | median ns | bytes in the file | lost, 1 and 2 threads | |"
    );
    println!("|---|--:|--:|--:|--:|--:|---|---|");
    for (name, note, _) in PEERS {
        if args.is_empty() || args.iter().any(|arg| name.starts_with(arg.as_str())) {
            let [one, two] = [1, 2].map(|threads| in_a_process(name, threads));
            println!(
                "| {name} | {} | {} | {} | {} | {} | {}, {} | {note} |",
                one[0], one[1], two[0], two[1], one[2], one[3], two[3]
            );
        }
    }
}

/// Best, median, bytes per scope and lost scopes, as text.
fn in_a_process(name: &str, threads: usize) -> [String; 4] {
    let this = std::env::current_exe().expect("the path of this program");
    let child = Command::new(this).args(["--case", name, &threads.to_string()]).output();
    let output = child.expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find_map(|line| line.strip_prefix("result "));
    let mut parts = result.unwrap_or("failed failed failed failed").split(' ').map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

fn floor(work: &Work) -> Outcome {
    let (nanos, _) = work.on_threads(|batches| {
        let mut floor = floor::Floor::new();
        batches.run(|scopes| floor.run(scopes));
    });
    Outcome { nanos, bytes: None, arrived: None }
}
