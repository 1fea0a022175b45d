//! Waits in collectives, computed again by hand from the JSON of two ranks.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use kymograph_analysis::table::Cells;
use kymograph_analysis::{Metric, Model, Options, Part, Reading, run};
use kymograph_converters::format;
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
