//! What it costs to read a trace and to compute metrics of it: events per second on one core, and
//! how the parts of that compare. See `docs/BENCHMARKS.md`.
//!
//! `cargo bench -p kymograph-analysis [-- STEPS|TRACE]`: a made training, of whose steps each has
//! 9,000 events, or a trace of Kineto's in JSON, as it lies.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;
use std::time::{Duration, Instant};

use kymograph_analysis::{Metric, Model, Options, Reading, run};
use kymograph_converters::format::{self, Format};
use kymograph_converters::packed::Packing;
use kymograph_converters::trace::Trace;

/// HTA's list but for the critical path, and what is looked at most besides.
const HTA: [&str; 15] = [
    "temporal_breakdown",
    "kernel_breakdown",
    "kernel_types",
    "user_annotations",
    "comm_comp_overlap",
    "idle_time",
    "idle_intervals",
    "launch_stats",
    "aten_delay",
    "queue_length",
    "queue_length_summary",
    "memory_bandwidth",
    "memory_bandwidth_summary",
    "profiler_steps",
    "call_graph",
];
const OTHERS: [&str; 10] = [
    "critical_path",
    "operators",
    "overview",
    "idle_causes",
    "step_variance",
    "slowest_step",
    "roofline",
    "stacks",
    "antipatterns",
    "data_quality",
];
const OPERATORS: usize = 3_000;

/// Kineto's JSON of a training: each operator calls another, which launches a kernel.
fn training(steps: usize) -> String {
    let mut json = String::from("{\"schemaVersion\": 1, \"traceEvents\": [\n");
    let mut at = 0.0;
    for step in 0..steps {
        let dur = OPERATORS as f64 * 10.0;
        let _ = writeln!(
            json,
            "{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{step}\", \
             \"pid\": 1, \"tid\": 1, \"ts\": {at}, \"dur\": {dur}}},"
        );
        for n in 0..OPERATORS {
            let number = step * OPERATORS + n + 1;
            let (name, kernel) = match n % 16 {
                0 => ("aten::all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                1..8 => ("aten::mm", "ampere_sgemm_128x64_nn"),
                _ => ("aten::add", "void at::native::vectorized_elementwise_kernel<4>"),
            };
            let stream = if n % 16 == 0 { 20 } else { 7 };
            let inner = at + 1.0;
            let (call, work) = (at + 3.0, at + 7.0);
            let _ = writeln!(
                json,
                "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \
                 \"ts\": {inner:.3}, \"dur\": 8.25, \"args\": {{\"External id\": {number}, \
                 \"Input Dims\": [[128, 64], [64, 256]], \"Input type\": [\"float\", \"float\"]}}}},\n\
                 {{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \
                 \"pid\": 1, \"tid\": 1, \"ts\": {call:.3}, \"dur\": 3.5, \"args\": {{\
                 \"External id\": {number}, \"cbid\": 211, \"correlation\": {number}}}}},\n\
                 {{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{kernel}\", \"pid\": 0, \
                 \"tid\": {stream}, \"ts\": {work:.3}, \"dur\": 7.125, \"args\": {{\
                 \"External id\": {number}, \"device\": 0, \"context\": 1, \"stream\": {stream}, \
                 \"correlation\": {number}, \"grid\": [64, 1, 1], \"block\": [128, 1, 1], \
                 \"blocks per SM\": 0.5, \"est. achieved occupancy %\": 30}}}},"
            );
            at += 10.0;
        }
    }
    json.truncate(json.trim_end_matches([',', '\n']).len());
    json + "\n]}"
}

/// The shortest of some rounds.
fn best_of(rounds: usize, mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..rounds).map(round).min().unwrap_or_default()
}

fn model(trace: &Trace) -> Model<'_> {
    Model::new(trace, None, 0, Reading::Exact)
}

fn compute(model: &Model<'_>, names: &[&str]) {
    let options = Options::default();
    for metric in names.iter().filter_map(|name| Metric::find(name)) {
        let _ = black_box(run::of_rank(metric, model, &options));
    }
}

fn main() {
    // `cargo bench` says --bench, `cargo test --benches` does not.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let full = words.iter().any(|word| word == "--bench");
    let steps =
        words.iter().find_map(|word| word.parse().ok()).unwrap_or(if full { 50 } else { 1 });
    let rounds = if full { 5 } else { 1 };
    let file = words.iter().find(|word| std::path::Path::new(word).is_file());
    let json = match file {
        Some(file) => std::fs::read_to_string(file).expect("JSON that is not packed"),
        None => training(steps),
    };
    let read = |bytes: &[u8]| format::read(Cursor::new(bytes), None).expect("a trace");
    let trace = read(json.as_bytes());
    let mut packets = Vec::new();
    format::write(&trace, &mut packets, Format::Perfetto, Packing::Plain).expect("into memory");
    let events = (trace.slices.len() + trace.activities.len()) as f64;
    let arrows = trace.flows.points.len();
    println!(
        "{events} events and {arrows} ends of arrows, {:.0} MB of JSON, {:.0} MB of .pftrace",
        json.len() as f64 / 1e6,
        packets.len() as f64 / 1e6
    );
    println!("{:<28}{:>10}{:>20}", "", "ms", "million events/s");
    let say = |what: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        println!("{what:<28}{:>10.1}{:>20.2}", seconds * 1e3, events / seconds / 1e6);
    };
    for (name, bytes) in [("JSON", json.as_bytes()), (".pftrace", &packets[..])] {
        say(&format!("read {name}"), best_of(rounds, || drop(black_box(read(bytes)))));
        let both = best_of(rounds, || compute(&model(&read(bytes)), &HTA));
        say(&format!("read {name}, HTA's metrics"), both);
    }
    say("model", best_of(rounds, || drop(black_box(model(&trace)))));
    for name in HTA.iter().chain(&OTHERS) {
        say(name, best_of(rounds, || compute(&model(&trace), &[name])));
    }
}
