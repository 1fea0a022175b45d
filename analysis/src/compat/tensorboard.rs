//! The TensorBoard plugin: torch-tb-profiler 0.4.3.

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
