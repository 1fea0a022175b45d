//! How near operators come to what the device can do.
//!
//! For matrix products, convolutions, attention and simple arithmetic the shapes of the inputs
//! say how many floating point operations there are, and how many bytes have to be moved at
//! least: each input read and each output written once. Their device time is that of all work
//! that they and what they call launched; an operator within one that has a rule counts as part
//! of it. `operators` has PyTorch's FLOPs, whose rules are fewer.
//!
//! The **intensity** is FLOPs per byte. A device's **roof** at an intensity is what it can
//! compute, or move and compute with: the lesser of its peak and of intensity times bandwidth.
//! Where the bandwidth is the lesser, an operator is bound by memory. Peaks are those of data
//! sheets, dense, for the numbers that the operator works with (floats whose kernels use tensor
//! cores are TF32), from a table of devices (`analysis/src/peaks.rs`); `--peak-flops` and
//! `--peak-bandwidth` say otherwise.
//!
//! The row `(all)` is the whole device: its time is from the first work to the end of the last,
//! and `of_peak` is the model FLOPs utilization (MFU). `(without rule)` is computing work of other
//! operators: where that is much, the MFU is too low.

mod rules;

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use super::kernels::TensorCores;
use super::operators::InputsOf;
use super::{kernels, needs_device_work};
use crate::metric::one_by_one;
use crate::model::{Class, Kind, Model};
use crate::peaks::{self, Peaks, Precision};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options, Unit};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "roofline",
    answers: "what operators achieve of what the device can compute and move, and the MFU",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("operator", "the operator; (all) and (without rule): see the metric"),
    Column::text("precision", "the numbers it works with: fp64, fp32, tf32, fp16, fp8"),
    Column::int("calls", "how often it came"),
    Column::duration("device_time", "how long its work took on the device; the largest first"),
    Column::float("flops", "floating point operations"),
    Column::float("bytes", "the least that has to be moved").unit(Unit::Bytes),
    Column::float("intensity", "FLOPs per byte"),
    Column::float("flops_per_second", "achieved"),
    Column::float("bandwidth", "achieved, of the least that has to be moved")
        .unit(Unit::GigabytesPerSecond),
    Column::percent("of_peak", "achieved of what the device can compute in this precision"),
    Column::percent("of_roof", "achieved of what is possible at this intensity"),
    Column::text("bound", "compute or memory; null if the device is not known"),
    Column::text("device", "the device whose peaks are meant; null if it is not known"),
];

/// What operators of one name and precision did.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    time: i64,
    flops: f64,
    bytes: f64,
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    if model.trace.strings.find("Input Dims").is_none() {
        let what = "has no shapes of inputs (record_shapes=True, or kymo record --pytorch shapes)";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    }
    let owned = Owned::of(model);
    let (inputs, types) = (InputsOf::new(model), model.argument("Input type"));
    let mut precisions = Precisions::of(model);
    let mut sums: BTreeMap<(&str, Precision), Sum> = BTreeMap::new();
    for same in owned.of.chunk_by(|(one, ..), (next, ..)| one == next) {
        let (operator, ..) = same[0];
        let work = || same.iter().map(|(.., work)| *work);
        let Some(needed) = rules::of(model.name(operator), &inputs, operator) else { continue };
        let ty = types.list(operator).and_then(|list| model.texts_of(list).next());
        let precision = precisions.find(ty.unwrap_or_default(), &work);
        let width = ty.and_then(width).unwrap_or(match precision {
            Precision::Double => 8.0,
            Precision::Float | Precision::Tf32 => 4.0,
            Precision::Half => 2.0,
            Precision::Byte => 1.0,
        });
        let sum = sums.entry((model.name(operator), precision)).or_default();
        sum.calls += 1;
        sum.time += work().map(|row| model.events.durs[row as usize]).sum::<i64>();
        sum.flops += needed.flops;
        sum.bytes += needed.elements * width;
    }
    let device = device(model);
    let roof = Roof { device, options };
    let mut rows = Rows::new(COLUMNS);
    let mut put = |name: &str, precision: Option<Precision>, sum: Sum, of_peak: Option<f64>| {
        let seconds = sum.time as f64 / 1e9;
        let speed = sum.flops / seconds;
        let peak = precision.and_then(|precision| roof.flops(precision));
        let intensity = sum.flops / sum.bytes;
        let moved = roof.bandwidth().map(|bandwidth| intensity * bandwidth);
        let least = peak.zip(moved).map(|(peak, moved)| peak.min(moved));
        let bound =
            peak.zip(moved).map(|(peak, moved)| if moved < peak { "memory" } else { "compute" });
        let known = sum.flops > 0.0;
        let percent = |of: Option<f64>| of.map(|of| speed / of * 100.0).filter(|_| known);
        rows.push([
            model.rank.into(),
            name.into(),
            precision.map(Precision::name).into(),
            sum.calls.into(),
            sum.time.into(),
            known.then_some(sum.flops).into(),
            (sum.bytes > 0.0).then_some(sum.bytes).into(),
            known.then_some(intensity).into(),
            known.then_some(speed).into(),
            (sum.bytes > 0.0).then_some(sum.bytes / seconds / 1e9).into(),
            of_peak.or(percent(peak)).into(),
            percent(least).into(),
            bound.filter(|_| known).into(),
            device.map(|device| device.name).into(),
        ]);
    };
    let mut all: Vec<((&str, Precision), Sum)> =
        sums.into_iter().filter(|(_, sum)| sum.time > 0).collect();
    all.order_by_key(|(key, sum)| (std::cmp::Reverse(sum.time), *key));
    let busy = model.busy_at_all();
    let span = busy.last().map_or(0, |last| last.1) - busy.first().map_or(0, |first| first.0);
    let mut whole = Sum { time: span, ..Sum::default() };
    let mut used = Some(0.0);
    for ((_, precision), sum) in &all {
        whole.calls += sum.calls;
        whole.flops += sum.flops;
        whole.bytes += sum.bytes;
        let seconds = roof.flops(*precision).map(|peak| sum.flops / peak);
        used = used.zip(seconds).map(|(used, seconds)| used + seconds);
    }
    let mfu = used.filter(|_| whole.flops > 0.0).map(|used| used / (span as f64 / 1e9) * 100.0);
    put("(all)", None, whole, mfu);
    put("(without rule)", None, owned.rest, None);
    for ((name, precision), sum) in all {
        put(name, Some(precision), sum, None);
    }
    rows.finish()
}

/// Work of devices by the outermost operator that has a rule.
struct Owned {
    /// The operator, the place of the work among that of devices, and the work.
    of: Vec<(u32, u32, u32)>,
    /// Computing work of other operators, or of none.
    rest: Sum,
}

impl Owned {
    fn of(model: &Model<'_>) -> Owned {
        let mut owned = Owned { of: Vec::new(), rest: Sum::default() };
        let mut outermost: HashMap<u32, Option<u32>> = HashMap::new();
        let mut known = HashMap::new();
        let mut has_rule = |row: u32| {
            model.events.kinds[row as usize] == Kind::Operator
                && *known
                    .entry(model.events.names[row as usize])
                    .or_insert_with(|| rules::has_rule(model.name(row)))
        };
        let (classes, owners, calls) = (model.classes(), model.owners(), model.calls());
        for (place, work) in (0..).zip(model.device().iter().copied()) {
            let operator = owners.get(work).and_then(|operator| {
                *outermost.entry(operator).or_insert_with(|| {
                    let around = std::iter::once(operator).chain(calls.callers(operator));
                    around.filter(|row| has_rule(*row)).last()
                })
            });
            match operator {
                Some(operator) => owned.of.push((operator, place, work)),
                None if classes.of_row(model, work) == Class::Computation => {
                    owned.rest.calls += 1;
                    owned.rest.time += model.events.durs[work as usize];
                }
                None => {}
            }
        }
        owned.of.sort_unstable();
        owned
    }
}

/// The size of an element, by the name that a C++ compiler gives its type.
fn width(ty: &str) -> Option<f64> {
    Some(match ty {
        "double" | "long int" | "c10::complex<float>" => 8.0,
        "float" | "int" => 4.0,
        "c10::Half" | "c10::BFloat16" | "short int" => 2.0,
        "unsigned char" | "signed char" | "bool" => 1.0,
        _ if ty.starts_with("c10::Float8") => 1.0,
        _ => return None,
    })
}

/// Which numbers operators work with. What the names of kernels tell is found out once for each
/// name.
struct Precisions<'m> {
    tensor_cores: Arc<TensorCores>,
    model: &'m Model<'m>,
    /// What names say: bytes, halves, TF32, doubles.
    said: [Box<dyn FnMut(u32) -> bool + 'm>; 4],
}

impl<'m> Precisions<'m> {
    fn of(model: &'m Model<'m>) -> Precisions<'m> {
        const BYTE: &[&str] = &["e4m3", "e5m2", "fp8"];
        const HALF: &[&str] =
            &["bf16", "f16", "fp16", "half", "BFloat16", "Half", "hgemm", "_HHS_", "_BBS_"];
        const DOUBLE: &[&str] = &["dgemm", "f64", "double"];
        let said = [BYTE, HALF, &["tf32"], DOUBLE].map(|parts: &'static [&str]| {
            let says = |name: &str| parts.iter().any(|part| name.contains(part));
            Box::new(model.names_that(says)) as Box<dyn FnMut(u32) -> bool + 'm>
        });
        Precisions { tensor_cores: kernels::tensor_cores(model), model, said }
    }

    /// By the type of the first input and, where it does not tell, by the names of kernels.
    fn find<W: Iterator<Item = u32>>(&mut self, ty: &str, work: &dyn Fn() -> W) -> Precision {
        let [byte, half, tf32, double] = &mut self.said;
        let any = |says: &mut dyn FnMut(u32) -> bool| work().any(says);
        match ty {
            "double" => Precision::Double,
            "float" if any(&mut |row| self.tensor_cores.used_by(self.model, row)) => {
                Precision::Tf32
            }
            "float" => Precision::Float,
            "c10::Half" | "c10::BFloat16" => Precision::Half,
            _ if ty.starts_with("c10::Float8") || ty == "signed char" => Precision::Byte,
            _ if any(byte) => Precision::Byte,
            _ if any(half) => Precision::Half,
            _ if any(tf32) => Precision::Tf32,
            _ if any(double) => Precision::Double,
            _ => Precision::Float,
        }
    }
}

/// The device that most of the work ran on.
fn device(model: &Model<'_>) -> Option<&'static Peaks> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for row in model.device() {
        *counts.entry(model.events.lane(*row).pid).or_default() += 1;
    }
    let (number, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let device = model.trace.devices.iter().find(|(_, device)| device.number == number)?.1;
    peaks::of(model.text(device.name)).or_else(|| peaks::of(model.text(device.model)))
}

/// What is possible.
struct Roof<'o> {
    device: Option<&'static Peaks>,
    options: &'o Options,
}

impl Roof<'_> {
    fn flops(&self, precision: Precision) -> Option<f64> {
        self.options.peak_flops.or_else(|| self.device?.flops(precision))
    }

    fn bandwidth(&self) -> Option<f64> {
        self.options.peak_bandwidth.or_else(|| Some(self.device?.bandwidth * 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn a_product_and_an_addition_by_hand() {
        // A product of 1024 × 2048 by 2048 × 4096 halves, and an addition of 2^20 floats.
        let lines = r#"
            cpu_op | aten::linear | 1 | 0 | 20 | "Input Dims": [[1024, 2048], [4096, 2048]], "Input type": ["c10::Half", "c10::Half"]
            cpu_op | aten::mm | 1 | 1 | 15 | "Input Dims": [[1024, 2048], [2048, 4096]], "Input type": ["c10::Half", "c10::Half"]
            cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 1
            kernel | nvjet_hsh | 7 | 100 | 100 | "correlation": 1
            cpu_op | aten::add | 1 | 30 | 10 | "Input Dims": [[1048576], [1048576]], "Input type": ["float", "float"]
            cuda_runtime | cudaLaunchKernel | 1 | 32 | 2 | "correlation": 2
            kernel | add | 7 | 200 | 10 | "correlation": 2
            cpu_op | aten::relu | 1 | 50 | 10 | "Input Dims": [[8]], "Input type": ["float"]
            cuda_runtime | cudaLaunchKernel | 1 | 52 | 2 | "correlation": 3
            kernel | relu | 7 | 290 | 10 | "correlation": 3
        "#;
        let batch = table(&METRIC, lines, &Options::default());
        let columns = ["operator", "precision", "calls", "device_time", "flops", "bytes", "bound"];
        let flops = 2u64 * 1024 * 2048 * 4096;
        let bytes = 2 * (1024 * 2048 + 2048 * 4096 + 1024 * 4096);
        assert_eq!(
            rows(&batch, &columns),
            [
                format!("(all) - 2 200000 {} {} -", flops + (1 << 20), bytes + 12 * (1 << 20)),
                "(without rule) - 1 10000 - - -".to_owned(),
                format!("aten::mm fp16 1 100000 {flops} {bytes} compute"),
                format!("aten::add fp32 1 10000 {} {} memory", 1 << 20, 12 * (1 << 20)),
            ]
        );
        let cells = crate::table::Cells::of(&batch);
        let near =
            |value: Option<f64>, expected: f64| (value.unwrap() / expected - 1.0).abs() < 1e-9;
        assert!(near(cells.float("of_peak", 2), flops as f64 / 1e-4 / 989.4e12 * 100.0));
        assert!(near(cells.float("of_roof", 3), 12.0 * f64::from(1 << 20) / 1e-5 / 4.8e12 * 100.0));
        let mfu = (flops as f64 / 989.4e12 + f64::from(1 << 20) / 67e12) / 200e-6 * 100.0;
        assert!(near(cells.float("of_peak", 0), mfu));
        let options = Options { peak_flops: Some(1e15), ..Options::default() };
        let own = table(&METRIC, lines, &options);
        let own = crate::table::Cells::of(&own).float("of_peak", 2);
        assert!(near(own, flops as f64 / 1e-4 / 1e15 * 100.0));
    }

    #[test]
    fn convolutions_and_attention_by_hand() {
        let lines = r#"
            cpu_op | aten::conv2d | 1 | 0 | 9 | "Input Dims": [[8, 64, 56, 56], [128, 64, 3, 3], [], [], [], [], []], "Input type": ["float", "float", "", "", "", "", ""], "Concrete Inputs": ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]
            cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 1
            kernel | conv | 7 | 100 | 100 | "correlation": 1
            cpu_op | aten::scaled_dot_product_attention | 1 | 10 | 9 | "Input Dims": [[2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 64]], "Input type": ["c10::Half", "c10::Half", "c10::Half"]
            cuda_runtime | cudaLaunchKernel | 1 | 15 | 2 | "correlation": 2
            kernel | flash | 7 | 200 | 50 | "correlation": 2
        "#;
        let batch = table(&METRIC, lines, &Options::default());
        let conv = 2u64 * 8 * 28 * 28 * 128 * 64 * 9;
        let attention = 2u64 * 2 * 8 * 128 * 256 * 64 * 2;
        assert_eq!(
            rows(&batch, &["operator", "flops"])[2..],
            [
                format!("aten::conv2d {conv}"),
                format!("aten::scaled_dot_product_attention {attention}")
            ]
        );
    }
}
