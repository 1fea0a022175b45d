//! Counters of kernels, as CUPTI's range profiler measures them, with the operators around their
//! launches: a row for each kernel and counter.
//!
//! PyTorch's profiler writes them with `_ExperimentalConfig(profiler_metrics=[…])`: an event
//! `cuda_profiler_range` for each kernel, with the counters as arguments. These know nothing of the
//! launches, but there are as many of both, in the same order: the n-th belongs to the n-th
//! `cudaLaunchKernel…`. Where their numbers differ, none can be told to belong to any.

use arrow_array::RecordBatch;
use kymograph_converters::trace::{StrId, Value};

use crate::metric::one_by_one;
use crate::model::{Kind, Model, number};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "cupti_counters",
    answers: "what CUPTI's counters say of each kernel, and which operators launched it",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("index", "the place of the measurement in the trace"),
    Column::text("name", "the kernel"),
    Column::moment("ts", "when it was measured"),
    Column::duration("dur", "how long that took"),
    Column::text("counter", "the counter"),
    Column::float("value", "what it counted"),
    Column::text("op_stack", "the operators around the launch, the outermost first, with ` > `"),
    Column::text("top_level_op", "the outermost; null if there is none"),
    Column::text("bottom_level_op", "the innermost; null if there is none"),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let events = &model.events;
    let all = || 0..events.len() as u32;
    let range = model.trace.strings.find("cuda_profiler_range");
    let is_measured = |row: &u32| Some(events.category(model.trace, *row)) == range;
    let mut measured: Vec<u32> = all().filter(is_measured).collect();
    if measured.is_empty() {
        return Err(Error::Nothing(format!(
            "rank {} has no counters of kernels: PyTorch's profiler writes them with \
             _ExperimentalConfig(profiler_metrics=[…])",
            model.rank
        )));
    }
    let is_launch = |row: &u32| {
        events.kinds[*row as usize] == Kind::Runtime
            && model.name(*row).starts_with("cudaLaunchKernel")
    };
    let mut launches: Vec<u32> = all().filter(is_launch).collect();
    if measured.len() != launches.len() {
        return Err(Error::Nothing(format!(
            "rank {} has {} measured kernels and {} launches: which belong together cannot be told",
            model.rank,
            measured.len(),
            launches.len()
        )));
    }
    for rows in [&mut measured, &mut launches] {
        events.sort_by_start(rows);
    }
    let mut rows = Rows::new(COLUMNS);
    for (row, launch) in measured.into_iter().zip(launches) {
        let mut stack: Vec<&str> = model
            .calls()
            .callers(launch)
            .filter(|caller| events.kinds[*caller as usize] == Kind::Operator)
            .map(|caller| model.name(caller))
            .collect();
        stack.reverse();
        let joined = (!stack.is_empty()).then(|| stack.join(" > "));
        for (counter, value) in counters(model, row) {
            rows.push([
                model.rank.into(),
                i64::from(events.positions[row as usize]).into(),
                model.name(row).into(),
                events.starts[row as usize].into(),
                events.durs[row as usize].into(),
                model.text(counter).into(),
                value.into(),
                joined.as_deref().into(),
                stack.first().copied().into(),
                stack.last().copied().into(),
            ]);
        }
    }
    rows.finish()
}

/// The arguments of a measurement that are numbers.
fn counters(model: &Model<'_>, row: u32) -> Vec<(StrId, f64)> {
    let args = model.events.args(model.trace, row);
    let of = |(name, value): (StrId, Value)| Some((name, number(value)?));
    model.trace.args.entries(args).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{kineto, rows, table};
    use crate::{Reading, run};

    #[test]
    fn counters_belong_to_the_operators_of_the_launch_of_their_number() {
        let lines = r#"
            cpu_op | aten::linear | 1 | 0 | 20 |
            cpu_op | aten::mm | 1 | 1 | 15 |
            cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 1
            cuda_runtime | cudaLaunchKernel | 1 | 30 | 2 | "correlation": 2
            cuda_profiler_range | add | 9 | 60 | 5 | "smsp__inst": 7
            cuda_profiler_range | gemm | 9 | 40 | 5 | "smsp__inst": 2.5, "sm__warps": 3
        "#;
        let columns = ["name", "counter", "value", "op_stack", "top_level_op", "bottom_level_op"];
        assert_eq!(
            rows(&table(&METRIC, lines, &Options::default()), &columns),
            [
                "gemm smsp__inst 2.500 aten::linear > aten::mm aten::linear aten::mm",
                "gemm sm__warps 3 aten::linear > aten::mm aten::linear aten::mm",
                "add smsp__inst 7 - - -",
            ]
        );
    }

    #[test]
    fn counters_of_unknown_launches_are_refused() {
        let lines = "cuda_profiler_range | gemm | 9 | 40 | 5 | \"sm__warps\": 3";
        let trace = kineto(lines);
        let model = Model::new(&trace, None, 0, Reading::Exact);
        let error = run::of_rank(&METRIC, &model, &Options::default()).unwrap_err();
        assert!(error.to_string().contains("1 measured kernels and 0 launches"), "{error}");
    }
}
