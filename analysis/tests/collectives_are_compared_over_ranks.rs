//! Waits in collectives, computed again by hand: from the JSON of two ranks, and from the tables
//! of a recording of two others, one of which is late on purpose.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use kymograph_analysis::findings::{METRICS, findings};
use kymograph_analysis::table::{Cells, RecordBatch};
use kymograph_analysis::{Metric, Model, Options, Part, Reading, run};
use kymograph_converters::format;
use kymograph_converters::trace::Trace;
use serde_json::Value;

fn files() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
    (0..2).map(|rank| own.join(format!("ddp_cut_rank{rank}.json.gz"))).collect()
}

fn parts(metric: &Metric) -> Vec<Part> {
    let part = |(rank, path): (i64, PathBuf)| {
        let trace = format::read(std::fs::File::open(path).unwrap(), None).unwrap();
        assert_eq!(run::ranks(&trace, 99), [(None, rank)], "the rank is told by the trace");
        let model = Model::new(&trace, None, rank, Reading::Exact);
        run::of_rank(metric, &model, &Options::default()).unwrap()
    };
    (0..).zip(files()).map(part).collect()
}

/// Nanoseconds of a number of microseconds with three places.
fn nanos(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1e3).round() as i64
}

/// By step: the durations of communication kernels, in the order of their beginnings.
fn by_hand(path: &Path) -> BTreeMap<i64, Vec<i64>> {
    let mut text = String::new();
    let packed = std::fs::read(path).unwrap();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let is = |event: &&Value, category: &str| event["cat"] == category;
    let mut steps = Vec::new();
    for event in events.iter().filter(|event| is(event, "user_annotation")) {
        if let Some(number) = event["name"].as_str().unwrap().strip_prefix("ProfilerStep#") {
            let start = nanos(&event["ts"]);
            steps.push((number.parse::<i64>().unwrap(), start, start + nanos(&event["dur"])));
        }
    }
    let mut launches: HashMap<i64, i64> = HashMap::new();
    for event in events.iter().filter(|e| is(e, "cuda_runtime") || is(e, "cuda_driver")) {
        launches.insert(event["args"]["correlation"].as_i64().unwrap(), nanos(&event["ts"]));
    }
    let mut kernels = Vec::new();
    for event in events.iter().filter(|event| is(event, "kernel")) {
        if event["name"].as_str().unwrap().starts_with("nccl") {
            let launch = launches[&event["args"]["correlation"].as_i64().unwrap()];
            let step = steps.iter().find(|(_, from, to)| (*from..*to).contains(&launch));
            let step = step.map_or(-1, |(number, ..)| *number);
            kernels.push((nanos(&event["ts"]), step, nanos(&event["dur"])));
        }
    }
    kernels.sort_unstable();
    let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (_, step, dur) in kernels {
        found.entry(step).or_default().push(dur);
    }
    found
}

#[test]
fn waits_are_those_computed_by_hand() {
    let [a, b] = [0, 1].map(|rank| by_hand(&files()[rank]));
    // Rank: what it waited, and what the other waited for it.
    let (mut waited, mut compared) = ([0i64; 2], 0);
    for (step, first) in &a {
        let Some(second) = b.get(step).filter(|second| second.len() == first.len()) else {
            continue;
        };
        for (x, y) in first.iter().zip(second) {
            waited[0] += (x - y).max(0);
            waited[1] += (y - x).max(0);
            compared += 1;
        }
    }
    assert!(compared > 0);
    let metric = Metric::find("stragglers").unwrap();
    let batch = run::over_ranks(metric, parts(metric), &Options::default()).unwrap();
    let cells = Cells::of(&batch);
    for row in 0..2 {
        let rank = cells.int("rank", row).unwrap() as usize;
        assert_eq!(cells.int("waited", row), Some(waited[rank]), "rank {rank}");
        assert_eq!(cells.int("waited_for", row), Some(waited[1 - rank]), "rank {rank}");
    }
    let late = if waited[0] > waited[1] { 1 } else { 0 };
    assert_eq!(cells.int("rank", 0), Some(late), "the straggler comes first");
}

#[test]
fn bandwidths_are_those_of_the_message() {
    let metric = Metric::find("collectives").unwrap();
    let batch = run::over_ranks(metric, parts(metric), &Options::default()).unwrap();
    let cells = Cells::of(&batch);
    let compared = (0..batch.num_rows()).find(|row| cells.int("ranks", *row) == Some(2)).unwrap();
    // An all-gather of 4 ranks with 4096 floats in all, in 7.84 µs.
    assert_eq!(cells.text("collective", compared), Some("all_gather"));
    assert_eq!(cells.int("message", compared), Some(16_384));
    assert_eq!(cells.int("transfer", compared), Some(7_840));
    let (algorithm, bus) = (16_384.0 / 7_840.0, 16_384.0 / 7_840.0 * 0.75);
    assert_eq!(cells.float("algorithm_bandwidth", compared), Some(algorithm));
    assert!((cells.float("bus_bandwidth", compared).unwrap() - bus).abs() < 1e-12);
}

/// What NCCL did in a training on two GPUs, as `kymo record` had it. Rank 1 sorts its inputs in
/// the forward pass, so that rank 0 waits for it.
fn recording() -> Trace {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings");
    format::read(std::fs::File::open(own.join("late_rank_2gpus.pftrace.gz")).unwrap(), None)
        .unwrap()
}

fn of_recording(trace: &Trace, metric: &str) -> Option<RecordBatch> {
    let (metric, options) = (Metric::find(metric).unwrap(), Options::default());
    let part = |(process, rank)| {
        let model = Model::new(trace, process, rank, Reading::Exact);
        run::of_rank(metric, &model, &options).ok()
    };
    let parts: Option<Vec<Part>> = run::ranks(trace, 0).into_iter().map(part).collect();
    run::over_ranks(metric, parts?, &options).ok()
}

#[test]
fn a_recording_names_its_straggler() {
    let trace = recording();
    // By rank: the durations of NCCL's kernels, in the order of their beginnings.
    let mut kernels: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for activity in trace.activities.iter() {
        if trace.strings.get(activity.name).starts_with("ncclDevKernel") {
            let pid = trace.contexts[activity.context.unwrap()].pid;
            let process = trace.processes.iter().find(|(_, process)| process.pid == pid).unwrap().0;
            let of = kernels.entry(trace.rank(process).unwrap()).or_default();
            of.push((activity.start.0, activity.dur.0));
        }
    }
    kernels.values_mut().for_each(|of| of.sort_unstable());
    let (a, b) = (&kernels[&0], &kernels[&1]);
    assert_eq!((a.len(), b.len()), (49, 49));
    let more = |(x, y): (&(i64, i64), &(i64, i64))| (x.1 - y.1).max(0);
    let waited: [i64; 2] = [a.iter().zip(b).map(more).sum(), b.iter().zip(a).map(more).sum()];

    let stragglers = of_recording(&trace, "stragglers").unwrap();
    let cells = Cells::of(&stragglers);
    assert_eq!((cells.int("rank", 0), cells.int("rank", 1)), (Some(1), Some(0)));
    assert_eq!(cells.int("waited_for", 0), Some(waited[0]));
    assert_eq!(cells.int("waited_for", 1), Some(waited[1]));

    let collectives = of_recording(&trace, "collectives").unwrap();
    let cells = Cells::of(&collectives);
    assert!(cells.text("group", 0).unwrap().starts_with("communicator "));
    assert_eq!((cells.int("group_size", 0), cells.int("ranks", 0)), (Some(2), Some(2)));

    let tables: Vec<(&str, RecordBatch)> =
        METRICS.iter().filter_map(|name| Some((*name, of_recording(&trace, name)?))).collect();
    let found = findings(&tables);
    let straggler = found.iter().find(|finding| finding.what.contains("wait for rank"));
    let straggler = straggler.expect("a straggler on the page");
    assert_eq!(straggler.what, "the other ranks wait for rank 1");
    assert!(straggler.evidence.contains("for the all_reduce"), "{}", straggler.evidence);
}

/// Our own recordings have it with the operator only.
#[test]
fn what_a_kernel_does_not_say_its_operator_does() {
    let metric = Metric::find("collectives").unwrap();
    let table = |json: &[u8]| {
        let trace = format::read(std::io::Cursor::new(json.to_vec()), None).unwrap();
        let model = Model::new(&trace, None, 0, Reading::Exact);
        run::of_rank(metric, &model, &Options::default()).unwrap().batch
    };
    for path in files() {
        let mut text = Vec::new();
        let packed = std::fs::read(path).unwrap();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
        let mut json: Value = serde_json::from_slice(&text).unwrap();
        let mut taken = 0;
        for event in json["traceEvents"].as_array_mut().unwrap() {
            let args = event["args"].as_object_mut().filter(|args| args.contains_key("grid"));
            let Some(args) = args else { continue };
            let all = args.len();
            args.retain(|key, _| {
                !(key.starts_with("Process Group") || key.contains(" msg ") || key == "dtype")
            });
            taken += usize::from(args.len() < all);
        }
        assert!(taken > 0);
        assert_eq!(table(&serde_json::to_vec(&json).unwrap()), table(&text));
    }
}
