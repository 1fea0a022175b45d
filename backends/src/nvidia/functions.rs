//! Functions of the CUDA API: which are worth a record, and which launch.

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
    const BEGINNINGS: [&str; 21] = [
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
        "cuProfiler",
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
