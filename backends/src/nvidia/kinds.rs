//! What is recorded: CUPTI's kinds of activities, how their records are laid out, and the names
//! that they are asked for by.
//!
//! A new kind is declared here (number, layout, name), read in `decode`, and has the names of its
//! arguments in `keys`.

use crate::device::fields::{kinds, records};
use crate::device::raw::u32x3;
use crate::device::selection::wants;

kinds! {
    /// `CUpti_ActivityKind`.
    MEMCPY = 1: copy,
    MEMSET = 2: set,
    KERNEL = 3: kernel,
    DRIVER = 4: api,
    RUNTIME = 5: api,
    CONTEXT = 9: context,
    CONCURRENT_KERNEL = 10: kernel,
    MARKER = 12: marker,
    OVERHEAD = 17: overhead,
    MEMCPY2 = 22: peer_copy,
    UNIFIED_MEMORY_COUNTER = 25: unified_memory,
    CUDA_EVENT = 36: event,
    STREAM = 37: stream,
    SYNCHRONIZATION = 38: synchronization,
    EXTERNAL_CORRELATION = 39: external,
    MEMORY2 = 49: memory,
    MEMORY_POOL = 50: memory_pool,
    GRAPH_TRACE = 51: graph,
}
/// One more than the largest number of a kind that can be asked for.
pub(crate) const END: u32 = 64;

// Fields have had the same offsets from CUDA 11.8 to 13.4 (cupti_activity.h): structs grow at
// their ends. The least size is that of 11.8.
records! {
    /// `CUpti_ActivityKernel4` to 13.
    kernel: Kernel = "Kernel", 200, times [start, end, completed, queued, submitted] {
        registers = u16 @ 6 "registersPerThread",
        start = u64 @ 16 "start",
        end = u64 @ 24 "end",
        completed = u64 @ 32 "completed",
        device = u32 @ 40 "deviceId",
        context = u32 @ 44 "contextId",
        stream = u32 @ 48 "streamId",
        grid = u32x3 @ 52 "gridX",
        block = u32x3 @ 64 "blockX",
        shared_static = u32 @ 76 "staticSharedMemory",
        shared_dynamic = u32 @ 80 "dynamicSharedMemory",
        local_per_thread = u32 @ 84 "localMemoryPerThread",
        correlation = u32 @ 92 "correlationId",
        name = u64 @ 104 "name",
        queued = u64 @ 120 "queued",
        submitted = u64 @ 128 "submitted",
        graph_node = u64 @ 144 "graphNodeId",
        graph = u32 @ 156 "graphId",
        channel = u32 @ 168 "channelID",
        channel_type = u32 @ 172 "channelType",
        cluster = u32x3 @ 176 "clusterX",
        device_launched = u8 @ 208 "isDeviceLaunched",
        priority = u32 @ 216 "priority",
    }
    /// `CUpti_ActivityMemcpy5` to 7.
    copy: Copy = "Memcpy", 88, times [start, end] {
        direction = u8 @ 4 "copyKind",
        from = u8 @ 5 "srcKind",
        to = u8 @ 6 "dstKind",
        bytes = u64 @ 8 "bytes",
        start = u64 @ 16 "start",
        end = u64 @ 24 "end",
        device = u32 @ 32 "deviceId",
        context = u32 @ 36 "contextId",
        stream = u32 @ 40 "streamId",
        correlation = u32 @ 44 "correlationId",
        graph_node = u64 @ 64 "graphNodeId",
        graph = u32 @ 72 "graphId",
        channel = u32 @ 76 "channelID",
        channel_type = u32 @ 80 "channelType",
        copies = u64 @ 88 "copyCount",
    }
    /// `CUpti_ActivityMemcpyPtoP4`.
    peer_copy: PeerCopy = "MemcpyPtoP", 96, times [start, end] {
        direction = u8 @ 4 "copyKind",
        from = u8 @ 5 "srcKind",
        to = u8 @ 6 "dstKind",
        bytes = u64 @ 8 "bytes",
        start = u64 @ 16 "start",
        end = u64 @ 24 "end",
        device = u32 @ 32 "deviceId",
        context = u32 @ 36 "contextId",
        stream = u32 @ 40 "streamId",
        from_device = u32 @ 44 "srcDeviceId",
        from_context = u32 @ 48 "srcContextId",
        to_device = u32 @ 52 "dstDeviceId",
        to_context = u32 @ 56 "dstContextId",
        correlation = u32 @ 60 "correlationId",
        graph_node = u64 @ 72 "graphNodeId",
        graph = u32 @ 80 "graphId",
    }
    /// `CUpti_ActivityMemset4` and 5.
    set: Set = "Memset", 88, times [start, end] {
        value = u32 @ 4 "value",
        bytes = u64 @ 8 "bytes",
        start = u64 @ 16 "start",
        end = u64 @ 24 "end",
        device = u32 @ 32 "deviceId",
        context = u32 @ 36 "contextId",
        stream = u32 @ 40 "streamId",
        correlation = u32 @ 44 "correlationId",
        memory = u16 @ 50 "memoryKind",
        graph_node = u64 @ 64 "graphNodeId",
        graph = u32 @ 72 "graphId",
        channel = u32 @ 76 "channelID",
        channel_type = u32 @ 80 "channelType",
    }
    /// `CUpti_ActivityGraphTrace` and 2: a graph as a whole.
    graph: Graph = "GraphTrace", 48, times [start, end] {
        correlation = u32 @ 4 "correlationId",
        start = u64 @ 8 "start",
        end = u64 @ 16 "end",
        device = u32 @ 24 "deviceId",
        graph = u32 @ 28 "graphId",
        context = u32 @ 32 "contextId",
        stream = u32 @ 36 "streamId",
    }
    /// `CUpti_ActivityAPI`: calls come by callbacks, and their records with external ids.
    api: Api = "API", 40, times [start, end] {
        function = u32 @ 4 "cbid",
        start = u64 @ 8 "start",
        end = u64 @ 16 "end",
        thread = u32 @ 28 "threadId",
        correlation = u32 @ 32 "correlationId",
    }
    /// `CUpti_ActivityExternalCorrelation`.
    external: External = "ExternalCorrelation", 24, times [] {
        id = u64 @ 8 "externalId",
        correlation = u32 @ 16 "correlationId",
    }
    /// `CUpti_ActivityOverhead` to 3.
    overhead: Overhead = "Overhead", 40, times [start, end] {
        what = u32 @ 4 "overheadKind",
        start = u64 @ 24 "start",
        end = u64 @ 32 "end",
    }
    /// `CUpti_ActivityStream`.
    stream: Stream = "Stream", 24, times [] {
        context = u32 @ 4 "contextId",
        stream = u32 @ 8 "streamId",
        priority = u32 @ 12 "priority",
    }
    /// `CUpti_ActivityContext` to 4.
    context: Context = "Context", 16, times [] {
        context = u32 @ 4 "contextId",
        device = u32 @ 8 "deviceId",
        default_stream = u16 @ 14 "nullStreamId",
    }
    /// `CUpti_ActivityMemory2` to 4.
    memory: Memory = "Memory", 120, times [time] {
        operation = u32 @ 4 "memoryOperationType",
        memory = u32 @ 8 "memoryKind",
        correlation = u32 @ 12 "correlationId",
        address = u64 @ 16 "address",
        bytes = u64 @ 24 "bytes",
        time = u64 @ 32 "timestamp",
        device = u32 @ 52 "deviceId",
    }
    /// `CUpti_ActivityMemoryPool2` and 3.
    memory_pool: MemoryPool = "MemoryPool", 72, times [time] {
        operation = u32 @ 4 "memoryPoolOperationType",
        correlation = u32 @ 12 "correlationId",
        device = u32 @ 20 "deviceId",
        kept = u64 @ 24 "minBytesToKeep",
        address = u64 @ 32 "address",
        bytes = u64 @ 40 "size",
        threshold = u64 @ 48 "releaseThreshold",
        time = u64 @ 56 "timestamp",
        utilized = u64 @ 64 "utilizedSize",
    }
    /// `CUpti_ActivityUnifiedMemoryCounter2` and 3.
    unified_memory: UnifiedMemory = "UnifiedMemoryCounter", 64, times [start, end] {
        counter = u32 @ 4 "counterKind",
        value = u64 @ 8 "value",
        start = u64 @ 16 "start",
        end = u64 @ 24 "end",
        address = u64 @ 32 "address",
        from = u32 @ 40 "srcId",
        to = u32 @ 44 "dstId",
    }
    /// `CUpti_ActivitySynchronization`: passed on to another user of CUPTI, not read.
    synchronization: Synchronization = "Synchronization", 40, times [start, end] {
        start = u64 @ 8 "start",
        end = u64 @ 16 "end",
    }
    /// `CUpti_ActivityCudaEvent2`, whose time is not there before 12.8: passed on.
    event: Event = "", 24, times [time] {
        time = u64 @ 40 "deviceTimestamp",
    }
    /// `CUpti_ActivityMarker`: passed on.
    marker: Marker = "", 0, times [time] {
        time = u64 @ 8 "timestamp",
    }
}

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
        (0..END).filter(move |kind| self.kinds >> kind & 1 != 0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Selection::default()
    }
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
}
