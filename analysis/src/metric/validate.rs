//! The six rules of PyTorch's trace validator (`torch.profiler._trace_validator`).
//!
//! | rule | what must hold |
//! |---|---|
//! | `check_gpu_kernel_causality` | the first kernel of an `External id` begins no earlier than its first `cudaLaunchKernel` |
//! | `check_stream_wait_corr_id_populated` | waits for events of streams and of the host name the record that they wait for |
//! | `check_stream_sync_overlap` | no kernel of a stream runs when a wait for the stream begins |
//! | `check_stream_wait_corr_id_in_past` | the record that a stream waits for is in the trace, and not later than the wait |
//! | `check_nccl_metadata` | `record_param_comms` says which collective it is, its type, sizes and group |
//! | `check_backward_seq_id_uniqueness` | a sequence number belongs to one backward operator |
//!
//! `validate` has a row for each rule, `violations` one for each thing that breaks one.

use std::sync::Arc;

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use crate::metric::one_by_one;
use crate::model::{Kind, Model, NONE, Numbered};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// By rule.
pub const METRIC: Metric = Metric {
    name: "validate",
    answers: "whether the trace keeps the six rules of PyTorch's trace validator",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// One by one.
pub const VIOLATIONS: Metric = Metric {
    name: "violations",
    answers: "what breaks the rules of PyTorch's trace validator, one by one",
    columns: VIOLATION_COLUMNS,
    of_trace: violations,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("rule", "the rule"),
    Column::text("verdict", "passed, violated, or nothing to check"),
    Column::int("checked", "how many things the rule is about"),
    Column::int("violations", "how many violations"),
    Column::text("example", "the first violation; null if there is none"),
];

const VIOLATION_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("rule", "the rule"),
    Column::moment("ts", "when what breaks it begins; null where it is about several events"),
    Column::text("message", "what breaks it"),
];

/// What a rule found.
#[derive(Default)]
struct Found {
    checked: u64,
    violations: Vec<(Option<i64>, String)>,
}

impl Found {
    fn violated(&mut self, at: i64, message: String) {
        self.violations.push((Some(at), message));
    }
}

type Rule = fn(&Model<'_>, &[Wait]) -> Found;

const RULES: [(&str, Rule); 6] = [
    ("check_gpu_kernel_causality", causality),
    ("check_stream_wait_corr_id_populated", waits_have_records),
    ("check_stream_sync_overlap", syncs_overlap),
    ("check_stream_wait_corr_id_in_past", records_are_past),
    ("check_nccl_metadata", nccl_metadata),
    ("check_backward_seq_id_uniqueness", sequence_numbers),
];

/// What all rules found.
fn found(model: &Model<'_>) -> Arc<Vec<(&'static str, Found)>> {
    model.shared((), || {
        let waits = all_waits(model);
        RULES.iter().map(|(name, rule)| (*name, rule(model, &waits))).collect()
    })
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    for (name, found) in found(model).iter() {
        let verdict = match (found.checked, found.violations.len()) {
            (0, 0) => "nothing to check",
            (_, 0) => "passed",
            _ => "violated",
        };
        rows.push([
            model.rank.into(),
            (*name).into(),
            verdict.into(),
            found.checked.into(),
            found.violations.len().into(),
            found.violations.first().map(|(_, message)| message.as_str()).into(),
        ]);
    }
    rows.finish()
}

fn violations(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(VIOLATION_COLUMNS);
    for (name, found) in found(model).iter() {
        for (at, message) in &found.violations {
            rows.push([model.rank.into(), (*name).into(), (*at).into(), message.as_str().into()]);
        }
    }
    rows.finish()
}

fn all(model: &Model<'_>) -> std::ops::Range<u32> {
    0..model.events.len() as u32
}

/// The kernel and the launch of each `External id` that begin first.
fn causality(model: &Model<'_>, _: &[Wait]) -> Found {
    let events = &model.events;
    let external = model.argument("External id");
    let launches = model.trace.strings.find("cudaLaunchKernel");
    let is_kernel = |row: u32| events.kinds[row as usize] == Kind::Kernel;
    let is_launch = |row: u32| {
        events.kinds[row as usize] == Kind::Runtime && Some(events.names[row as usize]) == launches
    };
    let rows = all(model).filter(|row| is_kernel(*row) || is_launch(*row));
    let ids: Vec<(u32, i64)> = rows.filter_map(|row| Some((row, external.int(row)?))).collect();
    let mut firsts = Numbered::new([NONE; 2], ids.iter().map(|(_, id)| *id), events.len());
    for (row, id) in ids {
        let first = &mut firsts.at(id)[usize::from(!is_kernel(row))];
        let start = |row: u32| events.starts[row as usize];
        if *first == NONE || start(row) < start(*first) {
            *first = row;
        }
    }
    let mut found = Found::default();
    let mut early = Vec::new();
    for (id, [kernel, launch]) in firsts.iter().filter(|(_, both)| !both.contains(&NONE)) {
        found.checked += 1;
        let (kernel_at, launch_at) =
            (events.starts[kernel as usize], events.starts[launch as usize]);
        if kernel_at < launch_at {
            early.push((id, kernel, kernel_at, launch_at));
        }
    }
    early.sort_unstable();
    for (id, kernel, kernel_at, launch_at) in early {
        let message = format!(
            "kernel `{}` of External id {id} begins {} ns before its cudaLaunchKernel",
            model.name(kernel),
            launch_at - kernel_at
        );
        found.violated(kernel_at, message);
    }
    found
}

/// A wait: its event, what kind it is, and the record that it waits for.
type Wait = (u32, String, Option<i64>);

/// All waits of a trace.
fn all_waits(model: &Model<'_>) -> Vec<Wait> {
    let kind = model.argument("cuda_sync_kind");
    let record = model.argument("wait_on_cuda_event_record_corr_id");
    let rows = if kind.is_known() { all(model) } else { 0..0 };
    rows.filter_map(|row| Some((row, model.plain(kind.value(row)?), record.int(row)))).collect()
}

/// Those of some kinds.
fn waits<'w>(all: &'w [Wait], kinds: &'w [&str]) -> impl Iterator<Item = &'w Wait> {
    all.iter().filter(|(_, kind, _)| kinds.contains(&kind.as_str()))
}

fn waits_have_records(model: &Model<'_>, all_waits: &[Wait]) -> Found {
    let mut found = Found::default();
    for (row, kind, record) in waits(all_waits, &["Stream Wait Event", "Event Sync"]) {
        found.checked += 1;
        if record.is_none_or(|record| record < 0) {
            let message = match record {
                Some(record) => format!("a `{kind}` waits for the event record {record}"),
                None => format!("a `{kind}` does not say which event record it waits for"),
            };
            found.violated(model.events.starts[*row as usize], message);
        }
    }
    found
}

fn syncs_overlap(model: &Model<'_>, all_waits: &[Wait]) -> Found {
    let events = &model.events;
    let (device, stream) = (model.argument("device"), model.argument("stream"));
    let mut kernels: HashMap<(i64, i64), Vec<u32>> = HashMap::new();
    if waits(all_waits, &["Stream Sync"]).next().is_none() {
        return Found::default();
    }
    for row in model.device().iter().copied() {
        if events.kinds[row as usize] == Kind::Kernel {
            let lane = events.lane(row);
            kernels.entry((lane.pid, lane.tid)).or_default().push(row);
        }
    }
    let mut found = Found::default();
    for (row, ..) in waits(all_waits, &["Stream Sync"]) {
        found.checked += 1;
        let at = events.starts[*row as usize];
        let lane = (device.int(*row), stream.int(*row));
        let (Some(device), Some(stream)) = lane else { continue };
        let of_stream = kernels.get(&(device, stream)).map_or(&[][..], Vec::as_slice);
        let before = of_stream.partition_point(|row| events.starts[*row as usize] < at);
        // Kernels of a stream end in the order in which they begin, or nearly so.
        let near = of_stream[..before].iter().rev().take(64);
        for kernel in near.filter(|row| events.end(**row) > at) {
            let message = format!(
                "kernel `{}` of stream {stream} runs {} ns longer when the wait for it begins",
                model.name(*kernel),
                events.end(*kernel) - at
            );
            found.violated(at, message);
        }
    }
    found
}

fn records_are_past(model: &Model<'_>, all_waits: &[Wait]) -> Found {
    const RECORDS: [&str; 4] = [
        "cudaEventRecord",
        "cudaEventRecord_ptsz",
        "cudaEventRecordWithFlags",
        "cudaEventRecordWithFlags_ptsz",
    ];
    let events = &model.events;
    let external = model.argument("External id");
    if waits(all_waits, &["Stream Wait Event"]).next().is_none() {
        return Found::default();
    }
    let mut records: HashMap<i64, i64> = HashMap::new();
    let mut records_event = model.names_that(|name| RECORDS.contains(&name));
    for row in all(model) {
        let call = matches!(events.kinds[row as usize], Kind::Runtime | Kind::Driver);
        if !call || !records_event(row) {
            continue;
        }
        let start = events.starts[row as usize];
        let correlation = Some(events.correlations[row as usize]).filter(|number| *number != -1);
        for id in [external.int(row), correlation].into_iter().flatten() {
            let first = records.entry(id).or_insert(start);
            *first = (*first).min(start);
        }
    }
    let mut found = Found::default();
    for (row, _, record) in waits(all_waits, &["Stream Wait Event"]) {
        let Some(record) = record.filter(|record| *record >= 0) else { continue };
        found.checked += 1;
        let at = events.starts[*row as usize];
        match records.get(&record) {
            None => found.violated(
                at,
                format!("the event record {record} that a stream waits for is not in the trace"),
            ),
            Some(recorded) if *recorded > at => found.violated(
                at,
                format!(
                    "the event record {record} that a stream waits for is {} ns later",
                    recorded - at
                ),
            ),
            Some(_) => {}
        }
    }
    found
}

fn nccl_metadata(model: &Model<'_>, _: &[Wait]) -> Found {
    const FIELDS: [&str; 5] =
        ["Collective name", "Group size", "In msg nelems", "Out msg nelems", "dtype"];
    let fields = FIELDS.map(|name| (name, model.trace.strings.find(name)));
    let mut found = Found::default();
    let Some(name) = model.trace.strings.find("record_param_comms") else { return found };
    for row in all(model).filter(|row| model.events.names[*row as usize] == name) {
        found.checked += 1;
        let missing = fields.iter().filter(|(_, id)| model.arg(row, *id).is_none());
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            let message = format!("record_param_comms lacks {}", missing.join(", "));
            found.violated(model.events.starts[row as usize], message);
        }
    }
    found
}

fn sequence_numbers(model: &Model<'_>, _: &[Wait]) -> Found {
    let (number, other) = (model.argument("Sequence number"), model.argument("seq_num"));
    let mut names: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    let mut evaluates =
        model.names_that(|name| name.contains("autograd::engine::evaluate_function:"));
    for row in all(model).filter(|row| evaluates(*row)) {
        let name = model.name(row);
        // 0 counts as none there.
        let own = number.int(row).filter(|n| *n != 0).or_else(|| other.int(row));
        let Some(own) = own else { continue };
        let of_number = names.entry(own).or_default();
        if !of_number.contains(&name) {
            of_number.push(name);
        }
    }
    let mut found = Found { checked: names.len() as u64, ..Found::default() };
    for (number, names) in names.into_iter().filter(|(_, names)| names.len() > 1) {
        let names = names.join("`, `");
        let message = format!("sequence number {number} belongs to several: `{names}`");
        found.violations.push((None, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn each_rule_can_be_kept_and_broken() {
        let kept = r#"
            cuda_runtime | cudaLaunchKernel | 1 | 10 | 5 | "correlation": 1, "External id": 4
            kernel | k | 7 | 20 | 10 | "correlation": 1, "External id": 4
            cuda_runtime | cudaEventRecord | 1 | 16 | 1 | "correlation": 2
            cuda_sync | Stream Wait Event | 8 | 22 | 1 | "cuda_sync_kind": "Stream Wait Event", "stream": 8, "device": 0, "wait_on_cuda_event_record_corr_id": 2
            cuda_sync | Stream Sync | 7 | 40 | 1 | "cuda_sync_kind": "Stream Sync", "stream": 7, "device": 0
            cpu_op | record_param_comms | 1 | 50 | 1 | "Collective name": "x", "dtype": "Float", "In msg nelems": 1, "Out msg nelems": 1, "Group size": 2
            cpu_op | autograd::engine::evaluate_function: AddBackward0 | 2 | 50 | 1 | "Sequence number": 3
        "#;
        let columns = ["rule", "verdict", "checked", "violations"];
        let verdicts = rows(&table(&METRIC, kept, &Options::default()), &columns);
        assert_eq!(verdicts.len(), 6);
        assert!(verdicts.iter().all(|row| row.ends_with(" passed 1 0")), "{verdicts:#?}");
        let broken = r#"
            cuda_runtime | cudaLaunchKernel | 1 | 10 | 5 | "correlation": 1, "External id": 4
            kernel | k | 7 | 8 | 40 | "correlation": 1, "External id": 4
            cuda_sync | Stream Wait Event | 8 | 22 | 1 | "cuda_sync_kind": "Stream Wait Event", "stream": 8, "device": 0, "wait_on_cuda_event_record_corr_id": 2
            cuda_sync | Event Sync | 8 | 22 | 1 | "cuda_sync_kind": "Event Sync", "stream": 8, "device": 0, "wait_on_cuda_event_record_corr_id": -1
            cuda_sync | Stream Sync | 7 | 40 | 1 | "cuda_sync_kind": "Stream Sync", "stream": 7, "device": 0
            cpu_op | record_param_comms | 1 | 50 | 1 | "Collective name": "x"
            cpu_op | autograd::engine::evaluate_function: AddBackward0 | 2 | 50 | 1 | "Sequence number": 3
            cpu_op | autograd::engine::evaluate_function: MulBackward0 | 2 | 60 | 1 | "Sequence number": 3
        "#;
        let verdicts = rows(&table(&METRIC, broken, &Options::default()), &columns);
        assert!(verdicts.iter().all(|row| row.ends_with(" 1")), "{verdicts:#?}");
        let violations = rows(&table(&VIOLATIONS, broken, &Options::default()), &["ts", "message"]);
        assert_eq!(violations.len(), 6);
        assert!(violations[0].ends_with("begins 2000 ns before its cudaLaunchKernel"));
    }
}
