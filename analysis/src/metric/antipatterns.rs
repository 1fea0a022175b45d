//! Things that programs do at a cost and need not: those that PyTorch's pattern matcher
//! (`torch.profiler._pattern_matcher`) looked for.
//!
//! | pattern | what is looked for | what the trace must have |
//! |---|---|---|
//! | `extra_device_copy` | a tensor is filled on the host and moved to a device at once | shapes |
//! | `for_loop_indexing` | ten or more times the same operators from one `aten::select` to the next | |
//! | `fp32_matmul` | float matrices multiplied without tensor cores, on a device that has TF32 | shapes |
//! | `single_tensor_optimizer` | an optimizer that goes through parameters one by one | stacks |
//! | `synchronous_data_loader` | a data loader without workers | stacks |
//! | `gradients_set_to_zero` | `zero_grad` that writes zeros | stacks |
//! | `bias_before_batch_norm` | a convolution with a bias that a normalisation takes away again | shapes, stacks |
//! | `unaligned_matmul` | matrices of 16 bits with a dimension that is no multiple of 8 | shapes |
//!
//! Whether TF32 is allowed does not stand in a trace; that a kernel does not use tensor cores is
//! told by its name. A row is a pattern at a place in the program: the innermost Python function
//! around it that is not PyTorch's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use super::kernels::{self, TensorCores};
use crate::metric::one_by_one;
use crate::model::{Argument, Kind, Model};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "antipatterns",
    answers: "what the program does at a cost and need not do, and where in it",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("pattern", "what it is: see the metric"),
    Column::text("location", "the Python function in which it is; null if the trace has none"),
    Column::text("operator", "the first event that is meant"),
    Column::int("count", "how often it comes there"),
    Column::duration("host_time", "how long these events take on the host"),
    Column::duration("device_time", "how long the work takes that they launch"),
    Column::moment("first_ts", "when the first of them begins"),
    Column::text("advice", "what to do instead"),
];

/// Children of events, and what is looked up of them.
struct Tree<'m, 'a> {
    model: &'m Model<'a>,
    children: Lists,
    roots: HashMap<(i64, i64), Vec<u32>>,
    /// Work by the operator that launched it.
    work: Lists,
    types: Argument<'m, 'a>,
    dims: Argument<'m, 'a>,
    tensor_cores: Arc<TensorCores>,
}

/// Names and advice, in the order of [`Tree::matches`].
const PATTERNS: [(&str, &str); 8] = [
    ("extra_device_copy", "make the tensor on the device: torch.zeros(…, device=\"cuda\")"),
    ("for_loop_indexing", "index the tensor once, with all that is wanted"),
    ("fp32_matmul", "torch.set_float32_matmul_precision(\"high\") lets tensor cores multiply"),
    ("single_tensor_optimizer", "give the optimizer foreach=True or fused=True"),
    ("synchronous_data_loader", "give the DataLoader num_workers of more than 0"),
    ("gradients_set_to_zero", "zero_grad(set_to_none=True)"),
    (
        "bias_before_batch_norm",
        "bias=False for the convolution: the normalisation takes the bias away",
    ),
    ("unaligned_matmul", "pad the dimensions to multiples of 8"),
];

/// What was found at a place.
struct Found {
    first: u32,
    count: u64,
    host: i64,
    device: i64,
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let knows = |kind| model.events.kinds.contains(&kind);
    if !knows(Kind::Operator) && !knows(Kind::Python) {
        let what = "has neither operators nor Python functions to look at";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    }
    let tree = Tree::of(model);
    let mut found: BTreeMap<(usize, Option<&str>), Found> = BTreeMap::new();
    let mut may_begin = model.names_that(begins);
    for row in model.calls().order.iter().filter(|row| may_begin(**row)) {
        for (number, matches) in tree.matches(*row).into_iter().enumerate() {
            if !matches {
                continue;
            }
            let new = || Found { first: *row, count: 0, host: 0, device: 0 };
            let of = found.entry((number, tree.location(*row))).or_insert_with(new);
            of.count += 1;
            of.host += model.events.durs[*row as usize];
            of.device += tree.device_time(*row);
        }
    }
    let mut rows = Rows::new(COLUMNS);
    for ((number, location), found) in found {
        let (pattern, advice) = PATTERNS[number];
        rows.push([
            model.rank.into(),
            pattern.into(),
            location.into(),
            model.name(found.first).into(),
            found.count.into(),
            found.host.into(),
            found.device.into(),
            model.events.starts[found.first as usize].into(),
            advice.into(),
        ]);
    }
    rows.finish()
}

/// Whether a pattern may begin with an event of this name.
fn begins(name: &str) -> bool {
    const WHOLE: [&str; 6] =
        ["aten::to", "aten::select", "aten::mm", "aten::bmm", "aten::addmm", "aten::conv2d"];
    WHOLE.contains(&name)
        || name.contains("_single_tensor_")
        || name.starts_with("torch/utils/data/dataloader.py")
        || name.ends_with(": zero_grad")
}

/// Rows that belong to others, in their order.
struct Lists {
    /// Where those of each row begin, and where the last ones end.
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Lists {
    /// `pairs`: a row, and one that belongs to it.
    fn of(len: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut starts = vec![0; len + 1];
        pairs.clone().for_each(|(of, _)| starts[of as usize + 1] += 1);
        let mut all = 0;
        for start in &mut starts {
            all += *start;
            *start = all;
        }
        let mut next = starts.clone();
        let mut rows = vec![0; all as usize];
        for (of, row) in pairs {
            rows[next[of as usize] as usize] = row;
            next[of as usize] += 1;
        }
        Lists { starts, rows }
    }

    fn get(&self, row: u32) -> &[u32] {
        let at = row as usize;
        &self.rows[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

impl<'m, 'a> Tree<'m, 'a> {
    fn of(model: &'m Model<'a>) -> Tree<'m, 'a> {
        let calls = model.calls();
        let mut roots: HashMap<(i64, i64), Vec<u32>> = HashMap::new();
        for row in calls.order.iter().filter(|row| calls.parent(**row).is_none()) {
            let lane = model.events.lane(*row);
            roots.entry((lane.pid, lane.tid)).or_default().push(*row);
        }
        let called = calls.order.iter().filter_map(|row| Some((calls.parent(*row)?, *row)));
        let children = Lists::of(model.events.len(), called);
        let launched =
            model.device().iter().filter_map(|row| Some((model.owners().get(*row)?, *row)));
        let work = Lists::of(model.events.len(), launched);
        Tree {
            model,
            children,
            roots,
            work,
            types: model.argument("Input type"),
            dims: model.argument("Input Dims"),
            tensor_cores: kernels::tensor_cores(model),
        }
    }

    /// Which patterns an event is the beginning of.
    fn matches(&self, row: u32) -> [bool; PATTERNS.len()] {
        [
            self.extra_copy(row),
            self.loop_indexing(row),
            self.fp32_matmul(row),
            self.single_tensor_optimizer(row),
            self.synchronous_loader(row),
            self.gradients_zeroed(row),
            self.bias_before_norm(row),
            self.unaligned_matmul(row),
        ]
    }

    fn name(&self, row: u32) -> &'a str {
        self.model.name(row)
    }

    fn children(&self, row: u32) -> &[u32] {
        self.children.get(row)
    }

    fn last(&self, row: u32) -> Option<u32> {
        self.children(row).last().copied()
    }

    /// The events beside one, itself included.
    fn siblings(&self, row: u32) -> &[u32] {
        match self.model.calls().parent(row) {
            Some(parent) => self.children(parent),
            None => {
                let lane = self.model.events.lane(row);
                self.roots.get(&(lane.pid, lane.tid)).map_or(&[], Vec::as_slice)
            }
        }
    }

    /// Those before one, and those after it.
    fn around(&self, row: u32) -> (&[u32], &[u32]) {
        let all = self.siblings(row);
        // Siblings are in the order of their beginnings.
        let key = |row: &u32| {
            let at = *row as usize;
            let events = &self.model.events;
            (events.starts[at], events.durs[at] == 0, -events.durs[at], events.positions[at])
        };
        match all.binary_search_by_key(&key(&row), key) {
            Ok(at) => (&all[..at], &all[at + 1..]),
            Err(_) => (&[], &[]),
        }
    }

    /// The types of the inputs.
    fn types(&self, row: u32) -> impl Iterator<Item = &'a str> + '_ {
        let types = self.types.list(row).map(|list| self.model.texts_of(list));
        types.into_iter().flatten()
    }

    /// The shapes of the inputs; what is no tensor has none.
    fn shapes(&self, row: u32) -> Vec<Vec<f64>> {
        use kymograph_converters::trace::Value;
        let Some(list) = self.dims.list(row) else { return Vec::new() };
        let shape = |value| match value {
            Value::List(dims) => self.model.numbers(dims).unwrap_or_default(),
            _ => Vec::new(),
        };
        self.model.trace.args.items(list).map(shape).collect()
    }

    /// The program's own innermost Python function around an event.
    fn location(&self, row: u32) -> Option<&'a str> {
        let mut around = std::iter::once(row).chain(self.model.calls().callers(row));
        let own = |name: &str| {
            !name.starts_with("torch/") && !name.starts_with('<') && !name.starts_with("nn.Module")
        };
        let row = around.find(|row| {
            self.model.events.kinds[*row as usize] == Kind::Python && own(self.name(*row))
        })?;
        Some(self.name(row))
    }

    /// How long the work takes that an event and what it calls launched.
    fn device_time(&self, row: u32) -> i64 {
        let mut left = vec![row];
        let mut sum = 0;
        while let Some(row) = left.pop() {
            let work = self.work.get(row).iter();
            sum += work.map(|row| self.model.events.durs[*row as usize]).sum::<i64>();
            left.extend(self.children(row));
        }
        sum
    }

    fn extra_copy(&self, row: u32) -> bool {
        const FILLS: [&str; 4] = ["aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_"];
        if self.name(row) != "aten::to" {
            return false;
        }
        let copy = self.last(row).filter(|row| self.name(*row) == "aten::_to_copy");
        let copy = copy.and_then(|row| self.last(row));
        let Some(copy) = copy.filter(|row| self.name(*row) == "aten::copy_") else { return false };
        let same_type = matches!(self.types(copy).take(2).collect::<Vec<_>>()[..], [to, from] if to == from && !to.is_empty());
        let before = self.model.calls().parent(row).filter(|_| same_type);
        let Some(mut before) = before.and_then(|up| self.around(up).0.last().copied()) else {
            return false;
        };
        loop {
            if FILLS.contains(&self.name(before)) {
                return true;
            }
            match self.last(before) {
                Some(last) => before = last,
                None => return false,
            }
        }
    }

    /// The first of ten or more repetitions.
    fn loop_indexing(&self, row: u32) -> bool {
        const SELECT: &str = "aten::select";
        if self.name(row) != SELECT {
            return false;
        }
        let (before, after) = self.around(row);
        let Some(length) = after.iter().position(|row| self.name(*row) == SELECT) else {
            return false;
        };
        let unit: Vec<&str> = std::iter::once(row)
            .chain(after[..length].iter().copied())
            .map(|r| self.name(r))
            .collect();
        let is_unit = |rows: &[u32]| {
            rows.len() == unit.len()
                && rows.iter().map(|row| self.name(*row)).eq(unit.iter().copied())
        };
        if before.len() >= unit.len() && is_unit(&before[before.len() - unit.len()..]) {
            return false;
        }
        let repeated = after[length..].chunks(unit.len()).take_while(|rows| is_unit(rows));
        repeated.take(9).count() == 9
    }

    fn is_matmul(&self, row: u32) -> bool {
        matches!(self.name(row), "aten::mm" | "aten::bmm" | "aten::addmm")
    }

    fn fp32_matmul(&self, row: u32) -> bool {
        if !self.is_matmul(row) || self.types(row).next() != Some("float") {
            return false;
        }
        let mut kernels = self
            .work
            .get(row)
            .iter()
            .filter(|row| self.model.events.kinds[**row as usize] == Kind::Kernel);
        let first = kernels.clone().next();
        first.is_some_and(|row| self.has_tf32(*row))
            && !kernels.any(|row| self.tensor_cores.used_by(self.model, *row))
    }

    /// Whether the device of some work multiplies floats in tensor cores.
    fn has_tf32(&self, work: u32) -> bool {
        let trace = self.model.trace;
        let number = self.model.events.lane(work).pid;
        let device = trace.devices.iter().find(|(_, device)| device.number == number);
        let major = |name| {
            let value = trace.args.find(device?.1.properties, trace.strings.find(name)?)?;
            self.model.plain(value).split('.').next()?.parse::<i64>().ok()
        };
        let nvidia = device.is_some_and(|(_, device)| {
            let name = trace.strings.get(device.name);
            !name.contains("AMD") && !name.contains("Radeon")
        });
        nvidia && major("computeMajor").or_else(|| major("compute_capability")) >= Some(8)
    }

    fn single_tensor_optimizer(&self, row: u32) -> bool {
        let name = self.name(row);
        ["adam", "sgd", "adamw"].iter().any(|optimizer| {
            name.strip_suffix(optimizer).is_some_and(|start| start.ends_with("_single_tensor_"))
        })
    }

    fn synchronous_loader(&self, row: u32) -> bool {
        let is = |row: u32, function: &str| {
            let name = self.name(row);
            name.starts_with("torch/utils/data/dataloader.py") && name.ends_with(function)
        };
        let first = |row: u32| self.children(row).first().copied();
        let iterator = Some(row).filter(|row| is(*row, "__iter__")).and_then(first);
        let called = iterator.filter(|row| is(*row, "_get_iterator")).and_then(first);
        called.is_some_and(|row| !is(row, "check_worker_number_rationality"))
    }

    fn gradients_zeroed(&self, row: u32) -> bool {
        if !self.name(row).ends_with(": zero_grad") {
            return false;
        }
        let mut left: Vec<(u32, u32)> = self.children(row).iter().map(|c| (row, *c)).collect();
        while let Some((parent, row)) = left.pop() {
            if self.name(row) == "aten::zero_" && self.name(parent) != "aten::zeros" {
                return true;
            }
            left.extend(self.children(row).iter().map(|child| (row, *child)));
        }
        false
    }

    fn bias_before_norm(&self, row: u32) -> bool {
        let bias = || self.types(row).nth(2).is_some_and(|ty| !ty.is_empty());
        if self.name(row) != "aten::conv2d" || !bias() {
            return false;
        }
        let mut callers = self.model.calls().callers(row);
        let module = callers.find(|row| self.name(*row).starts_with("nn.Module: Conv2d"));
        let next = module.and_then(|row| self.around(row).1.first().copied());
        next.is_some_and(|row| self.name(row).starts_with("nn.Module: BatchNorm2d"))
    }

    fn unaligned_matmul(&self, row: u32) -> bool {
        let half = || matches!(self.types(row).next(), Some("c10::Half" | "c10::BFloat16"));
        if !self.is_matmul(row) || !half() {
            return false;
        }
        let aligned =
            |shape: &Vec<f64>| shape.iter().rev().take(2).all(|dim| dim.rem_euclid(8.0) == 0.0);
        !self.shapes(row).iter().all(aligned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    fn found(lines: &str) -> Vec<String> {
        rows(&table(&METRIC, lines, &Options::default()), &["pattern", "location", "count"])
    }

    #[test]
    fn what_pytorchs_matcher_found() {
        let copy = |fill: &str, to: &str| {
            found(&format!(
                r#"
                python_function | train.py(7): step | 1 | 0 | 100 |
                cpu_op | aten::zeros | 1 | 1 | 9 |
                cpu_op | aten::{fill} | 1 | 5 | 2 |
                python_function | <built-in method to> | 1 | 20 | 30 |
                cpu_op | aten::to | 1 | 22 | 20 |
                cpu_op | aten::_to_copy | 1 | 23 | 18 |
                cpu_op | aten::copy_ | 1 | 24 | 8 | "Input type": ["float", "{to}", ""]
                "#
            ))
        };
        assert_eq!(copy("zero_", "float"), ["extra_device_copy train.py(7): step 1"]);
        assert_eq!(copy("relu_", "float"), [""; 0]);
        assert_eq!(copy("zero_", "double"), [""; 0]);
        let select = |times: usize| {
            let one = |n: usize| {
                format!(
                    "cpu_op | aten::select | 1 | {} | 1 |\ncpu_op | aten::fill_ | 1 | {} | 1 |\n",
                    n * 10,
                    n * 10 + 5
                )
            };
            found(&(0..times).map(one).collect::<String>())
        };
        assert_eq!(select(12), ["for_loop_indexing - 1"]);
        assert_eq!(select(9), [""; 0]);
        let module = |bias: &str, next: &str| {
            found(&format!(
                r#"
                python_function | nn.Module: Conv2d_0 | 1 | 0 | 50 |
                cpu_op | aten::conv2d | 1 | 5 | 20 | "Input type": ["float", "float", "{bias}"]
                python_function | nn.Module: {next}_0 | 1 | 50 | 50 |
                "#
            ))
        };
        assert_eq!(module("float", "BatchNorm2d"), ["bias_before_batch_norm - 1"]);
        assert_eq!(module("", "BatchNorm2d"), [""; 0]);
        assert_eq!(module("float", "ReLU"), [""; 0]);
    }

    #[test]
    fn products_that_could_be_faster() {
        let product = |ty: &str, inner: usize, kernel: &str| {
            found(&format!(
                r#"
                cpu_op | aten::mm | 1 | 0 | 20 | "Input Dims": [[64, {inner}], [{inner}, 64]], "Input type": ["{ty}", "{ty}"]
                cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 1
                kernel | {kernel} | 7 | 100 | 100 | "correlation": 1
                "#
            ))
        };
        assert_eq!(product("float", 64, "ampere_sgemm_32x128_nn"), ["fp32_matmul - 1"]);
        assert_eq!(
            product("float", 64, "sm80_xmma_gemm_f32f32_f32f32_f32_nn"),
            ["fp32_matmul - 1"]
        );
        assert_eq!(product("float", 64, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn"), [""; 0]);
        assert_eq!(product("c10::BFloat16", 63, "nvjet_x"), ["unaligned_matmul - 1"]);
        assert_eq!(product("c10::BFloat16", 64, "nvjet_x"), [""; 0]);
    }

    #[test]
    fn what_python_functions_tell() {
        let lines = r#"
            python_function | torch/optim/sgd.py(1): _single_tensor_sgd | 1 | 0 | 10 |
            python_function | torch/utils/data/dataloader.py(1): __iter__ | 1 | 20 | 10 |
            python_function | torch/utils/data/dataloader.py(2): _get_iterator | 1 | 21 | 8 |
            python_function | torch/utils/data/dataloader.py(3): __init__ | 1 | 22 | 6 |
            python_function | torch/optim/optimizer.py(4): zero_grad | 1 | 40 | 10 |
            cpu_op | aten::zero_ | 1 | 42 | 3 |
        "#;
        let names: Vec<String> = rows(&table(&METRIC, lines, &Options::default()), &["pattern"]);
        let expected =
            ["single_tensor_optimizer", "synchronous_data_loader", "gradients_set_to_zero"];
        assert_eq!(names, expected);
        let fine = lines
            .replace("__init__", "check_worker_number_rationality")
            .replace("aten::zero_ ", "aten::add_ ")
            .replace("_single_tensor_", "_multi_tensor_");
        assert_eq!(found(&fine), [""; 0]);
    }
}
