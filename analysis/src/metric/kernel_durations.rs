//! How the durations of each kernel are distributed, over all of its runs on a rank.

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::Class;
use crate::stats::{describe, quantile};
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernel_durations",
    answers: "how the durations of each kernel are distributed: deviation, quartiles, extremes",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("kernel_type", "its kind"),
    Column::text("name", "the kernel, copy or fill"),
    Column::int("count", "how often it ran"),
    Column::duration("sum", "how long all of its runs took; the largest first"),
    Column::mean_duration("mean", "the mean of runs"),
    Column::mean_duration("std", "their standard deviation; null for one run"),
    Column::mean_duration("min", "the shortest run"),
    Column::mean_duration("25%", "a quarter of runs is shorter"),
    Column::mean_duration("50%", "half of them is shorter"),
    Column::mean_duration("75%", "three quarters are shorter"),
    Column::mean_duration("99%", "ninety-nine hundredths are shorter"),
    Column::mean_duration("max", "the longest run"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let classes = model.classes();
    let mut kernels: HashMap<(Class, &str), Vec<f64>> = HashMap::new();
    for row in model.device() {
        let class = classes.of_row(model, *row);
        if class == Class::Other || class == Class::Memory && !options.include_memory {
            continue;
        }
        let dur = model.events.durs[*row as usize] as f64;
        kernels.entry((class, model.name(*row))).or_default().push(dur);
    }
    let mut kernels: Vec<_> = kernels
        .into_iter()
        .map(|(key, mut durations)| {
            durations.sort_by(f64::total_cmp);
            (key, durations.iter().sum::<f64>(), durations)
        })
        .collect();
    kernels.order_by(|(a, more, _), (b, less, _)| less.total_cmp(more).then_with(|| a.cmp(b)));
    let mut rows = Rows::new(COLUMNS);
    for ((class, name), sum, durations) in kernels {
        let late = quantile(&durations, 0.99);
        let d = describe(durations);
        let [min, q25, q50, q75, max] = d.quartiles;
        rows.push([
            model.rank.into(),
            class.name().into(),
            name.into(),
            d.count.into(),
            (sum as i64).into(),
            d.mean.into(),
            d.std.into(),
            min.into(),
            q25.into(),
            q50.into(),
            q75.into(),
            late.into(),
            max.into(),
        ]);
    }
    rows.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn quartiles_are_those_of_data_tools() {
        let lines = r#"
            kernel | a | 7 | 0  | 1 | "correlation": 1
            kernel | a | 7 | 10 | 2 | "correlation": 2
            kernel | a | 7 | 20 | 4 | "correlation": 3
            gpu_memcpy | Memcpy DtoH | 7 | 30 | 5 | "correlation": 4
        "#;
        let columns = ["kernel_type", "name", "count", "sum", "25%", "50%", "99%", "std"];
        let all = rows(&table(&METRIC, lines, &Options::default()), &columns);
        assert_eq!(
            all,
            [
                "COMPUTATION a 3 7000 1500 2000 3960 1527.525",
                "MEMORY Memcpy DtoH 1 5000 5000 5000 5000 -",
            ]
        );
        let without = Options { include_memory: false, ..Options::default() };
        assert_eq!(table(&METRIC, lines, &without).num_rows(), 1);
    }
}
