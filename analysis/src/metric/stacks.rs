//! Where time goes by call stack: the input of flame graphs.
//!
//! A stack is the names of an event's callers and its own, the outermost first, with `;`
//! between them: Python functions, operators, annotations and calls of the runtime of a thread,
//! whatever the trace has. Its time is that of events with exactly this stack, without what they
//! call, so that times add up to what the thread did. Device time is that of the work that such
//! events launched. `--format collapsed` is what flamegraph.pl and most viewers read, `--format
//! speedscope` what <https://www.speedscope.app> reads; both have host time, or with `--weight
//! device` device time.
//!
//! `--compat torch` has the lines of PyTorch's `export_stacks`: one for each event in which at
//! least a microsecond passed, with the Python functions around it only (of backward operators,
//! those of the forward one); a space, `;`, a tab or a new line in a name is `_`. It writes none
//! where the profiler was not told `verbose=True`; where the trace has functions, this does.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::operators::{Stacks, Tree};
use crate::metric::one_by_one;
use crate::model::{Kind, Model, NONE};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

pub use crate::options::Weight;

/// See the module.
pub const METRIC: Metric = Metric {
    name: "stacks",
    answers: "where time goes by call stack: the input of flame graphs",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("stack", "names with `;` between them, the outermost first"),
    Column::int("count", "how many events have it"),
    Column::duration("host_time", "how long those took, without what they call"),
    Column::duration("device_time", "how long the work took that they launched"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if options.torch {
        return of_torch(model, options);
    }
    let calls = model.calls();
    if calls.order.is_empty() {
        return Err(Error::Nothing(format!("rank {} has no events on threads", model.rank)));
    }
    let events = &model.events;
    let mut own = events.durs.clone();
    for row in &calls.order {
        if let Some(parent) = calls.parent(*row) {
            own[parent as usize] -= events.durs[*row as usize];
        }
    }
    let mut device = vec![0i64; events.len()];
    for work in model.device().iter().filter(|row| events.kinds[**row as usize].is_work()) {
        if let Some(call) = model.peers().get(*work) {
            device[call as usize] += events.durs[*work as usize];
        }
    }
    // Equal stacks get one number: that of the caller's stack and the own name.
    let mut numbers: hashbrown::HashMap<(u32, u32), u32> = hashbrown::HashMap::new();
    let mut sums: Vec<Sum> = Vec::new();
    let mut of_row = vec![NONE; events.len()];
    for row in &calls.order {
        let caller = calls.parent(*row).map_or(NONE, |parent| of_row[parent as usize]);
        let name = events.names[*row as usize].0;
        let number = *numbers.entry((caller, name)).or_insert_with(|| {
            sums.push(Sum { caller, row: *row, count: 0, host: 0, device: 0 });
            sums.len() as u32 - 1
        });
        of_row[*row as usize] = number;
        let sum = &mut sums[number as usize];
        sum.count += 1;
        sum.host += own[*row as usize].max(0);
        sum.device += device[*row as usize];
    }
    let mut kept: Vec<usize> = (0..sums.len()).collect();
    kept.retain(|number| sums[*number].host > 0 || sums[*number].device > 0);
    let of = kept.len();
    if let Some(most) = options.most_rows.filter(|most| *most < of) {
        let time = |number: &usize| sums[*number].host.max(sums[*number].device);
        kept.select_nth_unstable_by_key(most, |number| (Reverse(time(number)), *number));
        kept.truncate(most);
    }
    let text = |number: usize| {
        let callers = std::iter::successors(Some(number), |number| {
            Some(sums[*number].caller as usize).filter(|caller| *caller != NONE as usize)
        });
        let mut names: Vec<&str> = callers.map(|number| model.name(sums[number].row)).collect();
        names.reverse();
        if names.iter().any(|name| name.contains(';')) {
            let plain: Vec<String> = names.iter().map(|name| name.replace(';', ",")).collect();
            return plain.join(";");
        }
        names.join(";")
    };
    let mut sorted: BTreeMap<String, (u64, i64, i64)> = BTreeMap::new();
    for number in kept {
        let Sum { count, host, device, .. } = sums[number];
        let sum = sorted.entry(text(number)).or_default();
        *sum = (sum.0 + count, sum.1 + host, sum.2 + device);
    }
    let mut rows = Rows::new(COLUMNS);
    for (stack, (count, host, device)) in sorted {
        rows.push([
            model.rank.into(),
            stack.as_str().into(),
            count.into(),
            host.into(),
            device.into(),
        ]);
    }
    rows.finish_of(of)
}

/// A stack: its callers' and a name, that of an event.
#[derive(Clone, Copy)]
struct Sum {
    caller: u32,
    row: u32,
    count: u64,
    host: i64,
    device: i64,
}

/// A row for each event, in their order; times in whole microseconds.
fn of_torch(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if !model.events.kinds.contains(&Kind::Python) {
        let what = "has no Python functions (with_stack=True records them)";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    }
    let tree = Tree::of(model, true)?;
    let stacks = Stacks::of(model, &tree);
    let mut rows = Rows::new(COLUMNS);
    for at in tree.all() {
        let micros = |time: f64| time as i64 * 1000;
        let (host, device) = tree.self_times(at);
        let (host, device) = (micros(host), micros(device));
        let time = if options.weight == Weight::Device { device } else { host };
        let name = |row| model.name(row).replace([' ', ';', '\t', '\n'], "_");
        let mut frames: Vec<String> = stacks.functions(stacks.of[at]).map(name).collect();
        if frames.is_empty() || time <= 0 {
            continue;
        }
        frames.reverse();
        let stack = frames.join(";");
        rows.push([
            model.rank.into(),
            stack.as_str().into(),
            1i64.into(),
            host.into(),
            device.into(),
        ]);
    }
    rows.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};
    use crate::render::{collapsed, speedscope};

    const LINES: &str = r#"
        python_function | main | 1 | 0 | 100 |
        cpu_op | aten::mm | 1 | 10 | 30 |
        cuda_runtime | cudaLaunchKernel | 1 | 15 | 5 | "correlation": 1
        cpu_op | aten::mm | 1 | 50 | 20 |
        kernel | gemm | 7 | 40 | 25 | "correlation": 1
    "#;

    #[test]
    fn times_add_up_to_what_the_thread_did() {
        let batch = table(&METRIC, LINES, &Options::default());
        assert_eq!(
            rows(&batch, &["stack", "count", "host_time", "device_time"]),
            [
                "main 1 50000 0",
                "main;aten::mm 2 45000 0",
                "main;aten::mm;cudaLaunchKernel 1 5000 25000",
            ]
        );
        assert_eq!(
            collapsed(&batch, Weight::Host, 1),
            "main 50000\nmain;aten::mm 45000\nmain;aten::mm;cudaLaunchKernel 5000\n"
        );
        assert_eq!(collapsed(&batch, Weight::Device, 1000), "main;aten::mm;cudaLaunchKernel 25\n");
        let json: serde_json::Value =
            serde_json::from_str(&speedscope(&batch, Weight::Host)).unwrap();
        let profile = &json["profiles"][0];
        assert_eq!(profile["samples"], serde_json::json!([[0], [0, 1], [0, 1, 2]]));
        assert_eq!(profile["weights"], serde_json::json!([50000, 45000, 5000]));
        assert_eq!(profile["endValue"], 100_000);
        assert_eq!(json["shared"]["frames"][1]["name"], "aten::mm");
    }
}
