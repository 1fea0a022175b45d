//! What to record: Kineto's names of activities, kinds of rocprofiler-sdk by name, and the
//! calls that are worth a slice.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::sys::{SUCCESS, Sdk, Status};
use crate::device::selection::wants;

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    pub(crate) kernels: bool,
    pub(crate) copies: bool,
    pub(crate) sets: bool,
    /// Calls of the HIP runtime API.
    pub(crate) calls: bool,
    /// Calls of RCCL.
    pub(crate) collectives: bool,
    /// What the runtime does by itself: scratch memory.
    pub(crate) overhead: bool,
    pub(crate) memory: bool,
    /// Launches of graphs, as a whole.
    pub(crate) graphs: bool,
    /// Pages that move between devices and the host, and faults that make them.
    pub(crate) unified: bool,
    /// Streams that wait for events.
    pub(crate) waits: bool,
    /// Calls of HSA, on which HIP is built.
    pub(crate) hsa: bool,
}

impl Selection {
    /// All that costs little while it is not asked for.
    pub(crate) const CHEAP: Selection = Selection {
        kernels: true,
        copies: true,
        sets: true,
        calls: true,
        collectives: true,
        overhead: true,
        memory: true,
        graphs: true,
        unified: false,
        waits: false,
        hsa: false,
    };

    /// From `ACTIVITY_TYPES`. HIP's calls are `cuda_runtime` in Kineto.
    pub(crate) fn parse(list: &str) -> Selection {
        Selection {
            kernels: wants(list, &["kernel", "concurrent_kernel"], true),
            copies: wants(list, &["gpu_memcpy"], true),
            sets: wants(list, &["gpu_memset"], true),
            calls: wants(list, &["cuda_runtime", "hip_runtime"], true),
            collectives: wants(list, &["collective_comm"], true),
            overhead: wants(list, &["overhead"], true),
            memory: wants(list, &["memory"], false),
            graphs: wants(list, &["graph_trace"], false),
            unified: wants(list, &["unified_memory"], false),
            waits: wants(list, &["hip_sync"], false),
            hsa: wants(list, &["hsa_api"], false),
        }
    }

    /// What is wanted of which there is nothing in what was set up, by its names.
    pub(crate) fn beyond(self, set_up: Selection) -> impl Iterator<Item = &'static str> {
        let pairs = [
            ("unified_memory", self.unified, set_up.unified),
            ("hip_sync", self.waits, set_up.waits),
            ("hsa_api", self.hsa, set_up.hsa),
        ];
        pairs.into_iter().filter(|(_, wanted, there)| *wanted && !there).map(|(name, ..)| name)
    }

    pub(crate) fn is_empty(self) -> bool {
        let Selection { kernels, copies, sets, calls, collectives, overhead, .. } = self;
        let Selection { memory, graphs, unified, waits, hsa, .. } = self;
        let usual = kernels || copies || sets || calls || collectives || overhead;
        !(usual || memory || graphs || unified || waits || hsa)
    }
}

/// Whether a call of the HIP runtime is worth a slice: not those that Kineto leaves out
/// (RocprofLogger.cpp), which are made all the time and do nothing, and their likes.
pub(crate) fn call_matters(name: &str) -> bool {
    const NOISE: [&str; 20] = [
        "__hipPopCallConfiguration",
        "__hipPushCallConfiguration",
        "hipCtxGetCurrent",
        "hipCtxSetCurrent",
        "hipDeviceGetAttribute",
        "hipDeviceGetStreamPriorityRange",
        "hipDeviceCanAccessPeer",
        "hipDriverGetVersion",
        "hipEventCreateWithFlags",
        "hipEventDestroy",
        "hipGetDevice",
        "hipGetDeviceCount",
        "hipGetErrorString",
        "hipGetErrorName",
        "hipGetLastError",
        "hipModuleGetFunction",
        "hipPeekAtLastError",
        "hipPointerGetAttributes",
        "hipRuntimeGetVersion",
        "hipSetDevice",
    ];
    // hipGetDevicePropertiesR0600 and whatever it will be called next.
    !NOISE.contains(&name) && !name.starts_with("hipGetDeviceProperties")
}

/// Whether a call of HSA is worth a slice: not those that are made all the time and only look.
pub(crate) fn hsa_call_matters(name: &str) -> bool {
    const LOOKS: [&str; 3] = ["hsa_signal_load", "hsa_queue_load", "hsa_status_string"];
    !name.ends_with("_get_info") && !LOOKS.iter().any(|look| name.starts_with(look))
}

/// Whether a call may ask a device for work: it gets an arrow.
pub(crate) fn may_launch(name: &str) -> bool {
    let parts = ["Launch", "Memcpy", "Memset", "MemPrefetch"];
    parts.iter().any(|part| name.contains(part))
}

/// Kinds of the library at hand, by name. Their numbers changed from version to version.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    buffer: HashMap<String, c_int>,
    callback: HashMap<String, c_int>,
}

type KindName = unsafe extern "C" fn(c_int, *mut *const c_char, *mut u64) -> Status;

impl Kinds {
    pub(crate) fn learn(sdk: &Sdk) -> Kinds {
        let mut numbers: (Vec<c_int>, Vec<c_int>) = Default::default();
        // SAFETY: each is called back within the call, with the list it is given.
        unsafe {
            (sdk.buffer_kinds)(note, (&raw mut numbers.0).cast());
            (sdk.callback_kinds)(note, (&raw mut numbers.1).cast());
        }
        let named = |numbers: Vec<c_int>, name: KindName| {
            let pairs = numbers.into_iter().filter_map(|kind| Some((kind_name(name, kind)?, kind)));
            pairs.collect()
        };
        Kinds {
            buffer: named(numbers.0, sdk.buffer_kind_name),
            callback: named(numbers.1, sdk.callback_kind_name),
        }
    }

    pub(crate) fn buffer(&self, name: &str) -> Option<c_int> {
        self.buffer.get(name).copied()
    }

    pub(crate) fn callback(&self, name: &str) -> Option<c_int> {
        self.callback.get(name).copied()
    }
}

fn kind_name(query: KindName, kind: c_int) -> Option<String> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: stores a pointer to a string literal, and nothing where there is no place.
    let result = unsafe { query(kind, &mut name, std::ptr::null_mut()) };
    if result != SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// Operations of a callback kind: number and name.
pub(crate) fn operations(sdk: &Sdk, kind: c_int) -> Vec<(c_int, String)> {
    let mut numbers: Vec<c_int> = Vec::new();
    // SAFETY: called back within the call, with the list it is given.
    unsafe { (sdk.callback_operations)(kind, note_operation, (&raw mut numbers).cast()) };
    let name = |operation: &c_int| {
        let mut name: *const c_char = std::ptr::null();
        let null = std::ptr::null_mut();
        // SAFETY: as for kinds.
        let result = unsafe { (sdk.callback_operation_name)(kind, *operation, &mut name, null) };
        if result != SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: a string literal of the library's.
        Some((*operation, unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()))
    };
    numbers.iter().filter_map(name).collect()
}

/// # Safety
/// `list` is the list that was passed with it.
unsafe extern "C" fn note(kind: c_int, list: *mut c_void) -> c_int {
    // SAFETY: the caller's promise; nothing else uses it meanwhile.
    unsafe { (*list.cast::<Vec<c_int>>()).push(kind) };
    0
}

/// # Safety
/// `list` is the list that was passed with it.
unsafe extern "C" fn note_operation(_kind: c_int, operation: c_int, list: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { note(operation, list) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kinetos() {
        let all = Selection::parse("");
        assert!(all.kernels && all.calls && all.sets && !all.memory && !all.graphs);
        let some = Selection::parse("KERNEL,cpu_op");
        assert!(some.kernels && !some.calls && !some.copies);
        assert!(Selection::parse("xpu_runtime").is_empty());
        assert!(!all.hsa && !all.unified && !all.waits);
        let more = Selection::parse("kernel,hsa_api,unified_memory");
        assert_eq!(
            more.beyond(Selection::CHEAP).collect::<Vec<_>>(),
            ["unified_memory", "hsa_api"]
        );
        assert_eq!(more.beyond(more).count(), 0);
    }

    #[test]
    fn noise_is_not_recorded() {
        for name in ["hipGetDevice", "__hipPushCallConfiguration", "hipGetDevicePropertiesR0600"] {
            assert!(!call_matters(name), "{name}");
        }
        for name in ["hipLaunchKernel", "hipMalloc", "hipEventRecord", "hipStreamSynchronize"] {
            assert!(call_matters(name), "{name}");
        }
        assert!(hsa_call_matters("hsa_amd_memory_pool_allocate"));
        assert!(!hsa_call_matters("hsa_agent_get_info"));
        assert!(!hsa_call_matters("hsa_signal_load_relaxed"));
        assert!(may_launch("hipGraphLaunch") && !may_launch("hipStreamSynchronize"));
    }
}
