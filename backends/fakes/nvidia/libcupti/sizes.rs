//! How many bytes a record has, by kind and version: what `cuptiActivityGetNextRecord`
//! steps. From `cupti_activity.h` of the versions named; the real libraries up to 13.1 are
//! asked in `tests/real_cupti_walks_our_records.rs`.

/// `CUpti_ActivityKind`.
pub(crate) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const KERNEL: u32 = 3;
    pub(crate) const DRIVER: u32 = 4;
    pub(crate) const RUNTIME: u32 = 5;
    pub(crate) const DEVICE: u32 = 8;
    pub(crate) const CONTEXT: u32 = 9;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    pub(crate) const OVERHEAD: u32 = 17;
    pub(crate) const MEMCPY2: u32 = 22;
    pub(crate) const UNIFIED_MEMORY_COUNTER: u32 = 25;
    pub(crate) const CUDA_EVENT: u32 = 36;
    pub(crate) const STREAM: u32 = 37;
    pub(crate) const SYNCHRONIZATION: u32 = 38;
    pub(crate) const EXTERNAL_CORRELATION: u32 = 39;
    pub(crate) const MEMORY2: u32 = 49;
    pub(crate) const MEMORY_POOL: u32 = 50;
    pub(crate) const GRAPH_TRACE: u32 = 51;
}

/// The size of a kind's records in a version (major * 100 + minor), if it has the kind.
pub(crate) fn size_of(kind: u32, toolkit: u32) -> Option<usize> {
    let (_, steps) = SIZES.iter().find(|(of, _)| *of == kind)?;
    let step = steps.iter().rev().find(|(since, _)| *since <= toolkit)?;
    Some(step.1)
}

/// Kind, and its sizes since the versions where they changed.
#[rustfmt::skip]
pub(crate) const SIZES: &[(u32, &[(u32, usize)])] = &[
    (1, &[(1108, 88), (1208, 96), (1304, 112)]), // MEMCPY
    (2, &[(1108, 88), (1304, 104)]), // MEMSET
    (3, &[(1108, 200), (1200, 208), (1300, 216), (1301, 224), (1303, 232), (1304, 248)]), // KERNEL
    (4, &[(1108, 40)]), // DRIVER
    (5, &[(1108, 40)]), // RUNTIME
    (8, &[(1108, 176), (1202, 184), (1302, 192)]), // DEVICE
    (9, &[(1108, 16), (1204, 24), (1205, 32), (1301, 40)]), // CONTEXT
    (10, &[(1108, 200), (1200, 208), (1300, 216), (1301, 224), (1303, 232), (1304, 248)]), // CONCURRENT_KERNEL
    (11, &[(1108, 32)]), // NAME
    (12, &[(1108, 56)]), // MARKER
    (13, &[(1108, 32), (1300, 40)]), // MARKER_DATA
    (17, &[(1108, 40), (1203, 48), (1204, 56)]), // OVERHEAD
    (20, &[(1108, 40)]), // ENVIRONMENT
    (22, &[(1108, 96)]), // MEMCPY2
    (25, &[(1108, 64), (1208, 104)]), // UNIFIED_MEMORY_COUNTER
    (26, &[(1108, 32)]), // FUNCTION
    (27, &[(1108, 24)]), // MODULE
    (28, &[(1108, 24)]), // DEVICE_ATTRIBUTE
    (36, &[(1108, 24), (1208, 56)]), // CUDA_EVENT
    (37, &[(1108, 24)]), // STREAM
    (38, &[(1108, 40), (1208, 56)]), // SYNCHRONIZATION
    (39, &[(1108, 24)]), // EXTERNAL_CORRELATION
    (45, &[(1108, 80)]), // MEMORY
    (48, &[(1108, 40)]), // INTERNAL_LAUNCH_API
    (49, &[(1108, 120), (1206, 128)]), // MEMORY2
    (50, &[(1108, 72), (1300, 80)]), // MEMORY_POOL
    (51, &[(1108, 48), (1203, 56)]), // GRAPH_TRACE
    (52, &[(1108, 64), (1204, 72)]), // JIT
    (53, &[(1208, 56)]), // DEVICE_GRAPH_TRACE
    (54, &[(1208, 64)]), // MEM_DECOMPRESS
    (55, &[(1209, 32)]), // CONFIDENTIAL_COMPUTE_ROTATION
    (56, &[(1301, 56)]), // GRAPH_HOST_NODE
    (57, &[(1301, 24)]), // COMPUTE_ENGINE_CTX_SWITCH
    (58, &[(1301, 48)]), // HOST_LAUNCH
];
