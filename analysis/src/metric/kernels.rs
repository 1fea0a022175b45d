//! Kernels by name, as the kernel view of the TensorBoard plugin has them.
//!
//! Whether a kernel uses tensor cores (matrix cores) is told by its name: the names of cuDNN and
//! cuBLAS on Volta to Ada, which the plugin knows, and those that came later: Hopper's and
//! Blackwell's (`sm90`, `sm100`, `wgmma`, `nvjet`, `tcgen05`), CUTLASS 3, and AMD's `mfma`; less
//! cuBLAS's products of floats (`xmma_gemm_f32f32_f32f32_f32`), which the plugin counts. Blocks per
//! multiprocessor and the estimated occupancy are those of the trace, in the mean over time; a
//! kernel of which the trace does not say counts as 0, as it does there.

use kymograph_converters::order::Order as _;
use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::trace::StrId;

use super::needs_device_work;
use crate::compat::tensorboard;
use crate::metric::one_by_one;
use crate::model::{Argument, Kind};
use crate::stats::Moments;
use crate::table::{Cell, Rows};
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernels",
    answers: "which kernels ran how often and how long, on tensor cores or not, how well they fill \
              the device",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("name", "the kernel"),
    Column::text("tensor_cores", "Yes or No"),
    Column::int("calls", "how often it ran"),
    Column::duration("total_duration", "how long it ran"),
    Column::mean_duration("mean_duration", "how long in the mean"),
    Column::duration("max_duration", "the longest time"),
    Column::duration("min_duration", "the shortest time"),
    Column::float("mean_blocks_per_sm", "blocks by multiprocessors, in the mean over time"),
    Column::percent("mean_occupancy", "the estimated occupancy, in the mean over time"),
];

/// How long a kernel ran, and what that time is weighted with.
#[derive(Default)]
pub(super) struct Sum {
    moments: Moments,
    blocks: f64,
    occupancy: f64,
}

impl Sum {
    /// Adds a run: how long it was, blocks per multiprocessor, occupancy.
    pub(super) fn add(&mut self, dur: i64, blocks: Option<f64>, occupancy: Option<f64>) {
        self.moments.add(dur);
        self.blocks += blocks.unwrap_or(0.0) * dur as f64;
        self.occupancy += occupancy.unwrap_or(0.0) * dur as f64;
    }

    /// How long it ran altogether.
    pub(super) fn time(&self) -> i64 {
        self.moments.sum
    }

    /// Calls, time together, in the mean, at most, at least; blocks and occupancy in the mean.
    pub(super) fn cells(&self) -> [Cell<'static>; 7] {
        let m = self.moments;
        let mean = |weighted: f64| if m.sum > 0 { weighted / m.sum as f64 } else { 0.0 };
        [
            m.count.into(),
            m.sum.into(),
            m.mean().into(),
            m.max.into(),
            m.min.into(),
            mean(self.blocks).into(),
            mean(self.occupancy).into(),
        ]
    }
}

/// What the trace says of a run of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The event.
    pub(super) row: u32,
    /// Blocks per multiprocessor; NaN where the trace does not say.
    blocks: f64,
    /// The estimated occupancy, likewise.
    occupancy: f64,
}

impl Run {
    pub(super) fn blocks(&self) -> Option<f64> {
        Some(self.blocks).filter(|blocks| !blocks.is_nan())
    }

    pub(super) fn occupancy(&self) -> Option<f64> {
        Some(self.occupancy).filter(|occupancy| !occupancy.is_nan())
    }
}

/// The runs of kernels, in the order of [`Model::device`]; several metrics need what the trace says
/// of them.
pub(super) fn runs(model: &Model<'_>) -> Arc<Vec<Run>> {
    model.shared("runs of kernels", || {
        let (blocks, occupancy) =
            (model.argument("blocks per SM"), model.argument("est. achieved occupancy %"));
        let number = |of: &Argument<'_, '_>, row| of.float(row).unwrap_or(f64::NAN);
        let kernels = model.device().iter().copied();
        kernels
            .filter(|row| model.events.kinds[*row as usize] == Kind::Kernel)
            .map(|row| Run {
                row,
                blocks: number(&blocks, row),
                occupancy: number(&occupancy, row),
            })
            .collect()
    })
}

/// Which names of work are those of kernels that use tensor cores.
#[derive(Debug)]
pub(super) struct TensorCores(Vec<bool>);

impl TensorCores {
    /// Whether some work of a device uses them.
    #[inline]
    pub(super) fn used_by(&self, model: &Model<'_>, work: u32) -> bool {
        self.used_by_all(model.events.names[work as usize])
    }

    /// Whether the kernels of a name use them.
    pub(super) fn used_by_all(&self, name: StrId) -> bool {
        self.0.get(name.0 as usize).is_some_and(|used| *used)
    }
}

/// See [`TensorCores`]; several metrics ask for them, and each name takes long.
pub(super) fn tensor_cores(model: &Model<'_>) -> Arc<TensorCores> {
    model.shared("tensor cores", || {
        let mut used = vec![false; model.trace.strings.len() + 1];
        let mut uses = model.names_that(uses_tensor_cores);
        for row in model.device() {
            if let Some(used) = used.get_mut(model.events.names[*row as usize].0 as usize) {
                *used = uses(*row);
            }
        }
        TensorCores(used)
    })
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let tensor_cores = tensor_cores(model);
    let mut kernels: HashMap<StrId, Sum> = HashMap::new();
    for run in runs(model).iter() {
        let at = run.row as usize;
        let sum = kernels.entry(model.events.names[at]).or_default();
        sum.add(model.events.durs[at], run.blocks(), run.occupancy());
    }
    let mut kernels: Vec<(&str, StrId, Sum)> =
        kernels.into_iter().map(|(name, sum)| (model.text(name), name, sum)).collect();
    kernels.order_by(|a, b| (b.2.time(), a.0).cmp(&(a.2.time(), b.0)));
    let mut rows = Rows::new(COLUMNS);
    for (name, id, sum) in kernels {
        let tensor_cores = if tensor_cores.used_by_all(id) { "Yes" } else { "No" };
        let [calls, total, mean, max, min, blocks, occupancy] = sum.cells();
        rows.push([
            model.rank.into(),
            name.into(),
            tensor_cores.into(),
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

/// Whether a kernel's name is one of those that use tensor cores.
pub fn uses_tensor_cores(name: &str) -> bool {
    // What came after the TensorBoard plugin, and what it forgot.
    const OTHERS: [&str; 18] = [
        "nvjet_",
        "wgmma",
        "tcgen05",
        "cutlass3x_",
        "sm90_xmma_",
        "sm100_xmma_",
        "tensorop",
        "gmma",
        "imma",
        "qmma",
        "flash::flash_fwd_",
        "flash::flash_bwd_",
        "mfma",
        "Cijk_",
        // cuDNN's implicit products, by the types that they multiply.
        "_tf32f32",
        "_f16f16_",
        "_bf16bf16_",
        "_e4m3",
    ];
    // Products of floats by the ordinary units, which the plugin takes for others.
    let ordinary = name.contains("_f32f32_f32f32_f32_");
    !ordinary
        && (tensorboard::uses_tensor_cores(name) || OTHERS.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::uses_tensor_cores;

    #[test]
    fn kernels_of_all_generations() {
        for name in [
            "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn",
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align1>",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32",
            "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT",
            "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1",
        ] {
            assert!(uses_tensor_cores(name), "{name}");
        }
        for name in [
            "void at::native::vectorized_elementwise_kernel<4>",
            "ampere_sgemm_32x128_nn",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8",
        ] {
            assert!(!uses_tensor_cores(name), "{name}");
        }
    }
}
