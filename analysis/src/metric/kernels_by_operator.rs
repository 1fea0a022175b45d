//! Kernels by name, operator and launch, as the kernel view of the TensorBoard plugin has them.
//!
//! A kernel belongs to the operator that launched it. `--compat tensorboard` has the plugin's tree
//! instead (`operators`), where what no call launched belongs to `CallTreeRoot`, once for each thread
//! with steps, and what a call launched whose `External id` no operator has is lost.

use std::borrow::Cow;
use std::cmp::Ordering;

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

/// What rows are told apart by: kernel, operator, grid, block, registers, shared memory, whether the
/// operator is eligible.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    kernel: StrId,
    launcher: Launcher,
    sizes: [Size; 2],
    numbers: [Option<i64>; 2],
    eligible: bool,
}

impl Key {
    /// The order of rows that took equally long.
    fn compare(&self, other: &Key, model: &Model<'_>, texts: &[String]) -> Ordering {
        let name = |key: &Key| (model.text(key.kernel), key.launcher.name(model));
        let size = |at: usize| match self.sizes[at] == other.sizes[at] {
            true => Ordering::Equal,
            false => self.sizes[at].text(texts).cmp(&other.sizes[at].text(texts)),
        };
        let rest = |key: &Key| (key.numbers, key.eligible);
        let names = name(self).cmp(&name(other));
        names.then_with(|| size(0)).then_with(|| size(1)).then_with(|| rest(self).cmp(&rest(other)))
    }
}

/// The size of a grid or of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Size {
    Unknown,
    Known([u32; 3]),
    /// What the trace says in place of numbers, by its place among such texts.
    Said(u32),
}

impl Size {
    /// `says` is asked where the launch does not tell; equal texts are one.
    fn of(
        known: Option<Dim3>,
        texts: &mut Vec<String>,
        says: impl FnOnce() -> Option<String>,
    ) -> Size {
        if let Some(Dim3 { x, y, z }) = known {
            return Size::Known([x, y, z]);
        }
        let Some(text) = says() else { return Size::Unknown };
        let parts = text.trim_matches(['[', ']']).split(", ").map(|part| part.parse().ok());
        if let Some(Ok(size)) = parts.collect::<Option<Vec<u32>>>().map(<[u32; 3]>::try_from)
            && dimensions(size) == text
        {
            return Size::Known(size);
        }
        let place = texts.iter().position(|own| *own == text).unwrap_or_else(|| {
            texts.push(text);
            texts.len() - 1
        });
        Size::Said(place as u32)
    }

    fn text(self, texts: &[String]) -> Option<Cow<'_, str>> {
        match self {
            Size::Unknown => None,
            Size::Known(size) => Some(Cow::Owned(dimensions(size))),
            Size::Said(place) => texts.get(place as usize).map(|text| text.into()),
        }
    }
}

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
    let mut places: HashMap<Key, u32> = HashMap::new();
    let mut sums: Vec<(Key, Sum)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
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
        let sizes = launch.map_or((None, None), |launch| (launch.grid, launch.block));
        let key = Key {
            kernel: model.events.names[row as usize],
            launcher,
            sizes: [
                Size::of(sizes.0, &mut texts, || text(&grid)),
                Size::of(sizes.1, &mut texts, || text(&block)),
            ],
            numbers: [int(&registers), int(&shared)],
            eligible,
        };
        let place = *places.entry(key).or_insert_with(|| {
            sums.push((key, Sum::default()));
            sums.len() as u32 - 1
        });
        let (start, end) = tensorboard::interval(options.tensorboard, model.events.interval(row));
        let dur = end - start;
        let sum = &mut sums[place as usize].1;
        for _ in 0..times {
            sum.add(dur, run.blocks(), run.occupancy());
        }
    }
    let mut order: Vec<usize> = (0..sums.len()).collect();
    let compare = |one: &usize, other: &usize| {
        let ((one, more), (other, less)) = (&sums[*one], &sums[*other]);
        less.time().cmp(&more.time()).then_with(|| one.compare(other, model, &texts))
    };
    let of = order.len();
    if let Some(most) = options.most_rows.filter(|most| *most < of) {
        order.select_nth_unstable_by(most, compare);
        order.truncate(most);
    }
    order.sort_unstable_by(compare);
    let mut rows = Rows::new(COLUMNS);
    for place in order {
        let (key, sum) = &sums[place];
        let [grid, block] = key.sizes.map(|size| size.text(&texts));
        let [calls, total, mean, max, min, blocks, occupancy] = sum.cells();
        let yes = |is| if is { "Yes" } else { "No" };
        rows.push([
            model.rank.into(),
            model.text(key.kernel).into(),
            key.launcher.name(model).into(),
            grid.as_deref().into(),
            block.as_deref().into(),
            key.numbers[0].into(),
            key.numbers[1].into(),
            yes(tensor_cores.used_by_all(key.kernel)).into(),
            of_plugin.as_ref().map(|_| yes(key.eligible)).into(),
            calls,
            total,
            mean,
            max,
            min,
            blocks,
            occupancy,
        ]);
    }
    rows.finish_of(of)
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    // Faster than `format!`, and there may be thousands.
    let mut out = Vec::with_capacity(24);
    for (before, size) in [(&b"["[..], x), (b", ", y), (b", ", z)] {
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
