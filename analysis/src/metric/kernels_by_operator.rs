//! Kernels by name, operator and launch, as the kernel view of the TensorBoard plugin has them.
//!
//! A kernel belongs to the operator that launched it. `--compat tensorboard` has the plugin's tree
//! instead (`operators`), where what no call launched belongs to `CallTreeRoot`, once for each thread
//! with steps, and what a call launched whose `External id` no operator has is lost.

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::json::write_uint;
use kymograph_converters::trace::{Dim3, StrId};

use super::kernels::{self, Sum};
use super::needs_device_work;
use crate::compat::tensorboard::{self, Owner, Work};
use crate::metric::one_by_one;
use crate::model::{Argument, Model, whole};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernels_by_operator",
    answers: "which operator launched which kernels, with which grids, and how long they ran",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("name", "the kernel"),
    Column::text("operator", "the operator that launched it; null if there is none"),
    Column::text("grid", "blocks of a launch; null if the trace does not say"),
    Column::text("block", "threads of a block; null if the trace does not say"),
    Column::int("registers", "registers of a thread; null if the trace does not say"),
    Column::int("shared_memory", "bytes of shared memory of a block; null likewise"),
    Column::text("tensor_cores", "Yes or No: whether the kernel uses them"),
    Column::text(
        "operator_eligible",
        "Yes or No, by --compat tensorboard: whether the operator can use them; null without",
    ),
    Column::int("calls", "how often it ran"),
    Column::duration("total_duration", "how long it ran; the longest first"),
    Column::mean_duration("mean_duration", "how long in the mean"),
    Column::duration("max_duration", "the longest time"),
    Column::duration("min_duration", "the shortest time"),
    Column::float("mean_blocks_per_sm", "blocks by multiprocessors, in the mean over time"),
    Column::percent("mean_occupancy", "the estimated occupancy, in the mean over time"),
];

/// Kernel, operator, grid, block, registers, shared memory, whether the operator is eligible.
type Key<'a> =
    (&'a str, Option<&'a str>, Option<String>, Option<String>, Option<i64>, Option<i64>, bool);

/// The same with names and sizes as numbers: of kernels whose grid and block are known.
type Numbers = (StrId, Launcher, [[u32; 3]; 2], Option<i64>, Option<i64>, bool);

/// What launched a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Launcher {
    None,
    /// An operator, by its name.
    Operator(StrId),
    /// What the plugin has for kernels that no call launched.
    Root,
}

impl Launcher {
    fn name<'a>(self, model: &Model<'a>) -> Option<&'a str> {
        match self {
            Launcher::None => None,
            Launcher::Operator(name) => Some(model.text(name)),
            Launcher::Root => Some("CallTreeRoot"),
        }
    }
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let (grid, block) = (model.argument("grid"), model.argument("block"));
    let (registers, shared) =
        (model.argument("registers per thread"), model.argument("shared memory"));
    let tensor_cores = kernels::tensor_cores(model);
    let of_plugin = options.tensorboard.map(|state| Work::of(model, state));
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    // The same by numbers, so that sizes are only written where one of these is new.
    let mut known: HashMap<Numbers, usize> = HashMap::new();
    let mut sums: Vec<(StrId, Sum)> = Vec::new();
    let named = |row: u32| Launcher::Operator(model.events.names[row as usize]);
    for run in kernels::runs(model).iter() {
        let row = run.row;
        let (launcher, eligible, times) = match &of_plugin {
            Some(work) => match work.owner(model, row) {
                Some(Owner::Operator(row, eligible)) => (named(row), eligible, 1),
                Some(Owner::Root(times)) => (Launcher::Root, false, times),
                None => continue,
            },
            None => (model.owners().get(row).map_or(Launcher::None, named), false, 1),
        };
        let activity = model.events.activity(model.trace, row);
        let launch = activity.and_then(|activity| model.trace.launches.get(activity.launch?));
        let of_kernel =
            activity.and_then(|activity| model.trace.kernels.get(activity.kernel?)?.args);
        let text = |of: &Argument<'_, '_>| of.value(row).map(|value| model.plain(value));
        let int = |of: &Argument<'_, '_>| of.int(row).or_else(|| whole(of.value_in(of_kernel)?));
        let (registers, shared) = (int(&registers), int(&shared));
        let sizes = launch.and_then(|launch| Some([launch.grid?, launch.block?]));
        let name = model.events.names[row as usize];
        let mut place = |sums: &mut Vec<(StrId, Sum)>| {
            let sizes = launch.map_or((None, None), |launch| (launch.grid, launch.block));
            let key = (
                model.text(name),
                launcher.name(model),
                sizes.0.map(dimensions).or_else(|| text(&grid)),
                sizes.1.map(dimensions).or_else(|| text(&block)),
                registers,
                shared,
                eligible,
            );
            *places.entry(key).or_insert_with(|| {
                sums.push((name, Sum::default()));
                sums.len() - 1
            })
        };
        let place = match sizes {
            Some([grid, block]) => {
                let sizes = [grid, block].map(|size| [size.x, size.y, size.z]);
                let numbers = (name, launcher, sizes, registers, shared, eligible);
                *known.entry(numbers).or_insert_with(|| place(&mut sums))
            }
            None => place(&mut sums),
        };
        let (start, end) = tensorboard::interval(options.tensorboard, model.events.interval(row));
        let dur = end - start;
        let sum = &mut sums[place].1;
        for _ in 0..times {
            sum.add(dur, run.blocks(), run.occupancy());
        }
    }
    let mut order: Vec<(Key<'_>, usize)> = places.into_iter().collect();
    order.sort_unstable_by(|(one, at), (other, place)| {
        sums[*place].1.time().cmp(&sums[*at].1.time()).then_with(|| one.cmp(other))
    });
    let mut rows = Rows::new(COLUMNS);
    for ((name, operator, grid, block, registers, shared, eligible), place) in order {
        let (id, sum) = &sums[place];
        let [calls, total, mean, max, min, blocks, occupancy] = sum.cells();
        let yes = |is| if is { "Yes" } else { "No" };
        rows.push([
            model.rank.into(),
            name.into(),
            operator.into(),
            grid.as_deref().into(),
            block.as_deref().into(),
            registers.into(),
            shared.into(),
            yes(tensor_cores.used_by_all(*id)).into(),
            of_plugin.as_ref().map(|_| yes(eligible)).into(),
            calls,
            total,
            mean,
            max,
            min,
            blocks,
            occupancy,
        ]);
    }
    rows.finish()
}

fn dimensions(dim: Dim3) -> String {
    // Faster than `format!`, and there may be thousands.
    let mut out = Vec::with_capacity(24);
    for (before, size) in [(&b"["[..], dim.x), (b", ", dim.y), (b", ", dim.z)] {
        out.extend_from_slice(before);
        write_uint(&mut out, size.into());
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn kernels_belong_to_who_launched_them() {
        let lines = r#"
            cpu_op | aten::linear | 1 | 0 | 20 | "External id": 1
            cpu_op | aten::mm | 1 | 1 | 15 | "External id": 2
            cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 1, "External id": 2
            cuda_runtime | cudaLaunchKernel | 1 | 30 | 2 | "correlation": 2, "External id": 0
            kernel | gemm | 7 | 40 | 30 | "correlation": 1, "grid": [2, 1, 1], "block": [64, 1, 1]
            kernel | gemm | 7 | 80 | 10 | "correlation": 2, "grid": [2, 1, 1], "block": [64, 1, 1]
        "#;
        let columns = ["name", "operator", "grid", "calls", "total_duration", "operator_eligible"];
        assert_eq!(
            rows(&table(&METRIC, lines, &Options::default()), &columns),
            ["gemm aten::mm [2, 1, 1] 1 30000 -", "gemm - [2, 1, 1] 1 10000 -"]
        );
        let last = Some(tensorboard::Plugin::Last);
        let options = Options { tensorboard: last, ..Options::default() };
        assert_eq!(
            rows(&table(&METRIC, lines, &options), &columns),
            ["gemm aten::mm [2, 1, 1] 1 30000 Yes", "gemm CallTreeRoot [2, 1, 1] 1 10000 No"]
        );
    }
}
