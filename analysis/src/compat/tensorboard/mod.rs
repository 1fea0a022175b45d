//! The TensorBoard plugin: torch-tb-profiler.

mod tree;

use kymograph_converters::trace::StrId;

use crate::Model;

pub use crate::reading::Plugin;
pub(crate) use tree::{Owner, Role, Sum, Tree, Work};

/// The metrics that can follow the rules of the plugin.
pub const METRICS: [&str; 14] = [
    "recommendations",
    "overview",
    "gpu_utilization",
    "kernels",
    "kernels_by_operator",
    "operators",
    "operators_by_shape",
    "memory_statistics",
    "memory_curve",
    "memory_events",
    "modules",
    "distributed",
    "distributed_operations",
    "diff_tree",
];

/// Beginning and end as the plugin has them: it keeps microseconds, which count from 1970 in many
/// traces, in floating point, where they are only exact to a quarter.
pub fn interval(plugin: Option<Plugin>, (start, end): (i64, i64)) -> (i64, i64) {
    if plugin.is_none() {
        return (start, end);
    }
    let micros = |nanos: i64| nanos.div_euclid(1000) as f64 + nanos.rem_euclid(1000) as f64 / 1e3;
    let nanos = |micros: f64| {
        let whole = micros.floor();
        whole as i64 * 1000 + ((micros - whole) * 1e3).round() as i64
    };
    let begins = micros(start);
    (nanos(begins), nanos(begins + micros(end.saturating_sub(start))))
}

/// The number that joins operators with calls and device work: `External id`.
pub(crate) struct External([Option<StrId>; 2]);

impl External {
    pub(crate) fn of(model: &Model<'_>) -> External {
        External(["external id", "External id"].map(|name| model.trace.strings.find(name)))
    }

    pub(crate) fn number(&self, model: &Model<'_>, row: u32) -> Option<i64> {
        self.0.iter().find_map(|name| model.int(row, *name))
    }
}

/// Whether the plugin takes a range of the host for a collective, by its name.
pub fn is_collective(name: &str) -> bool {
    const COLLECTIVES: [&str; 5] =
        ["broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"];
    let rest = name.strip_prefix("nccl:").or_else(|| name.strip_prefix("gloo:"));
    rest.is_some_and(|rest| COLLECTIVES.contains(&rest))
}

/// Whether the plugin takes a kernel for one that uses tensor cores, by its name.
pub fn uses_tensor_cores(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "h884",
        "s884",
        "h1688",
        "s1688",
        "hmma",
        "i8816",
        "16816",
        "dgrad_1x1_stride_2x2",
        "first_layer_wgrad_kernel",
        "conv1x1",
        "conv2d_c1_k1",
        "direct_group",
        "xmma_implicit_gemm",
        "xmma_sparse_conv",
        "xmma_warp_specialized_implicit_gemm",
        "xmma_gemm",
        "xmma_sparse_gemm",
        "c1688",
    ];
    NAMES.iter().any(|part| name.contains(part))
}

/// Whether the plugin takes a range of the host for a data loader's, by its name.
pub fn is_data_loader(name: &str) -> bool {
    name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__")
        || name.starts_with("enumerate(DataPipe)#")
}

/// Operators that the plugin knows to be able to use tensor cores.
pub(crate) fn is_eligible(name: &str) -> bool {
    const OPERATORS: [&str; 34] = [
        "_convolution",
        "_convolution_nogroup",
        "_convolution_double_backward",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "convolution",
        "cudnn_convolution",
        "cudnn_convolution_transpose",
        "cudnn_convolution_backward",
        "cudnn_convolution_backward_input",
        "cudnn_convolution_backward_weight",
        "prelu",
        "addmm",
        "addmv",
        "addr",
        "matmul",
        "mm",
        "mv",
        "linear",
        "addbmm",
        "baddbmm",
        "bmm",
        "chain_matmul",
        "linalg_multi_dot",
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
    ];
    name.strip_prefix("aten::")
        .is_some_and(|name| OPERATORS.contains(&name) || name == "rnn_relu_cell")
}
