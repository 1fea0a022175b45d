//! What to record: Kineto's names of activities, CUPTI's kinds, and the calls of the API.

use super::sys::kind;
use crate::device::selection::wants;

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Selection {
    /// Bit n: activity kind n.
    kinds: u64,
    /// Calls of the runtime API.
    pub(crate) runtime: bool,
    /// Calls of the driver API that ask for work or wait for it.
    pub(crate) driver: bool,
    /// What the calls wait for, of either API.
    pub(crate) waits: bool,
}

/// Kineto's name, the kinds it stands for (`ACTIVITY_TYPES`; include/ActivityType.h), and
/// whether it is recorded unless something else is asked for.
const NAMES: [(&str, &[u32], bool); 14] = [
    ("gpu_memcpy", &[kind::MEMCPY, kind::MEMCPY2], true),
    ("gpu_memset", &[kind::MEMSET], true),
    ("kernel", &[kind::CONCURRENT_KERNEL], true),
    ("concurrent_kernel", &[kind::CONCURRENT_KERNEL], false),
    ("cuda_runtime", &[], true),
    ("cuda_driver", &[], true),
    // By the calls, not by CUPTI's kinds: see `super::sync`.
    ("cuda_sync", &[], true),
    ("cuda_event", &[], false),
    ("overhead", &[kind::OVERHEAD], true),
    // Come only before records of calls, so these are needed with them.
    ("external_correlation", &[kind::EXTERNAL_CORRELATION, kind::RUNTIME, kind::DRIVER], false),
    // Not of Kineto's. Graphs as a whole: cheap, but their kernels are not seen then.
    ("graph_trace", &[kind::GRAPH_TRACE], false),
    ("memory", &[kind::MEMORY2], false),
    ("memory_pool", &[kind::MEMORY_POOL], false),
    ("unified_memory", &[kind::UNIFIED_MEMORY_COUNTER], false),
];

impl Selection {
    /// From a list such as `kernel,gpu_memcpy,cuda_runtime`, in any case. Names that mean
    /// nothing to CUPTI (`cpu_op`) are for others; an empty list is the default.
    pub(crate) fn parse(list: &str) -> Selection {
        let mut selection = Selection::default();
        for (name, kinds, by_default) in NAMES {
            if wants(list, &[name], by_default) {
                selection.kinds |= kinds.iter().fold(0, |bits, kind| bits | 1 << kind);
                selection.runtime |= name == "cuda_runtime";
                selection.driver |= name == "cuda_driver";
                selection.waits |= matches!(name, "cuda_sync" | "cuda_event");
            }
        }
        if selection.kinds & (1 << kind::CONCURRENT_KERNEL) != 0 {
            // Say the devices and default streams of contexts and the priorities of
            // streams; a record each.
            selection.kinds |= 1 << kind::STREAM | 1 << kind::CONTEXT;
        }
        selection
    }

    /// The kinds, cheapest to lose last.
    pub(crate) fn kinds(self) -> impl Iterator<Item = u32> {
        (0..kind::END).filter(move |kind| self.kinds >> kind & 1 != 0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Selection::default()
    }
}

/// Whether a call of the runtime API is worth a slice. What is not is asked all the time
/// and does nothing: it is never enabled, so it costs nothing.
pub(crate) fn runtime_call_matters(name: &str) -> bool {
    const NOISE: [&str; 17] = [
        "cudaGetDevice",
        "cudaSetDevice",
        "cudaGetLastError",
        "cudaPeekAtLastError",
        "cudaGetErrorString",
        "cudaGetErrorName",
        "cudaGetDeviceCount",
        "cudaGetDeviceProperties",
        "cudaDeviceGetAttribute",
        "cudaDeviceGetStreamPriorityRange",
        "cudaDriverGetVersion",
        "cudaRuntimeGetVersion",
        "cudaEventCreate",
        "cudaEventCreateWithFlags",
        "cudaEventDestroy",
        "cudaPointerGetAttributes",
        "cudaDeviceCanAccessPeer",
    ];
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    // cudaGetDeviceProperties has a _v2.
    !NOISE.contains(&name.strip_suffix("_v2").unwrap_or(name))
}

/// Whether a call of the driver API is recorded if it does not come from within a call of
/// the runtime's: what asks for work, waits for it, loads code or maps memory.
pub(crate) fn driver_call_matters(name: &str) -> bool {
    const BEGINNINGS: [&str; 20] = [
        "cuLaunch",
        "cuGraphLaunch",
        "cuMemcpy",
        "cuMemset",
        "cuMemPrefetch",
        "cuMemCreate",
        "cuMemMap",
        "cuMemUnmap",
        "cuMemRelease",
        "cuMemExportToShareableHandle",
        "cuMemImportFromShareableHandle",
        "cuMemAlloc",
        "cuMemFree",
        "cuStreamSynchronize",
        "cuStreamWaitEvent",
        "cuCtxSynchronize",
        "cuEventSynchronize",
        "cuEventRecord",
        "cuModuleLoad",
        "cuLibraryLoad",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a call of the driver API launches kernels. The runtime makes it for each launch.
pub(crate) fn launches_kernels(name: &str) -> bool {
    name.starts_with("cuLaunchKernel") || name.starts_with("cuLaunchCooperativeKernel")
}

/// Whether a call gives away something that [`launches_kernels`] takes. (`__cudaGetKernel`
/// does not: it is for the launches of the runtime.)
pub(crate) fn gives_kernels(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "cuModuleGetFunction",
        "cuModuleEnumerateFunctions",
        "cuLibraryGetKernel",
        "cuLibraryEnumerateKernels",
        "cuLibraryGetUnifiedFunction",
        "cuKernelGetFunction",
        "cudaGetFuncBySymbol",
        "cudaGetKernel",
        "cudaLibraryGetKernel",
        "cudaLibraryEnumerateKernels",
        "cudaLibraryGetUnifiedFunction",
    ];
    NAMES.contains(&name)
}

/// Whether a call may ask a device for work: it gets an arrow.
pub(crate) fn may_launch(name: &str) -> bool {
    let parts = ["Launch", "Memcpy", "Memset", "MemPrefetch"];
    parts.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kinetos() {
        let all = Selection::parse("");
        assert!(all.runtime && all.driver && all.waits);
        assert_eq!(all.kinds().collect::<Vec<_>>(), [1, 2, 9, 10, 17, 22, 37]);
        let some = Selection::parse("CPU_OP, kernel,CUDA_RUNTIME");
        assert!(some.runtime && !some.driver && !some.waits);
        assert_eq!(some.kinds().collect::<Vec<_>>(), [9, 10, 37]);
        assert!(Selection::parse("cpu_op").is_empty());
        assert!(Selection::parse("cuda_event").waits);
    }

    #[test]
    fn noise_is_not_enabled() {
        for name in ["cudaGetDevice", "cudaGetDeviceProperties_v2", "cudaEventCreateWithFlags"] {
            assert!(!runtime_call_matters(name), "{name}");
        }
        for name in ["cudaLaunchKernel", "cudaLaunchKernel_ptsz", "cudaEventRecord", "cudaMalloc"] {
            assert!(runtime_call_matters(name), "{name}");
        }
        assert!(driver_call_matters("cuLaunchKernelEx_ptsz"));
        assert!(!driver_call_matters("cuCtxGetCurrent"));
        assert!(launches_kernels("cuLaunchKernel_ptsz") && !launches_kernels("cuLaunchHostFunc"));
        assert!(gives_kernels("cudaGetKernel") && !gives_kernels("__cudaGetKernel"));
        assert!(may_launch("cudaGraphLaunch") && !may_launch("cudaStreamSynchronize"));
    }
}
