//! Names of arguments, as Kineto writes them where it has them.

use crate::vendor::intern::intern;
use kymograph_protos::{Recorder, StrId};

macro_rules! keys {
    ($($field:ident = $text:literal,)*) => {
        /// Ids of the names.
        #[derive(Clone, Copy)]
        pub(crate) struct Keys {
            recorder: &'static dyn Recorder,
            pub(crate) cluster: [StrId; 3],
            $(pub(crate) $field: StrId,)*
        }

        impl Keys {
            pub(crate) fn new(recorder: &'static dyn Recorder) -> Keys {
                let id = |text: &str| intern(recorder, StrId::NONE, text.as_bytes());
                Keys {
                    recorder,
                    cluster: ["cluster x", "cluster y", "cluster z"].map(id),
                    $($field: id($text),)*
                }
            }
        }
    };
}

keys! {
    address = "Addr",
    api = "api",
    bandwidth = "memory bandwidth (GB/s)",
    blocks_per_sm = "blocks per SM",
    bytes = "bytes",
    channel = "channel",
    channel_type = "channel_type",
    context = "context",
    copy_count = "copy count",
    correlation = "correlation",
    cuda_sync = "cuda_sync",
    device = "device",
    device_launched = "device launched",
    external = "External id",
    from_context = "fromContext",
    from_device = "fromDevice",
    graph = "graph id",
    graph_node = "graph node id",
    in_context = "inContext",
    in_device = "inDevice",
    local_per_thread = "local memory per thread",
    mangled = "mangled name",
    memory = "cuda_memory",
    memory_kind = "memory kind",
    occupancy = "est. achieved occupancy %",
    overhead = "overhead",
    pool_kept = "bytes to keep",
    pool_threshold = "release threshold",
    pool_utilized = "utilized bytes",
    priority = "priority",
    registers = "registers per thread",
    shared = "shared memory",
    shared_dynamic = "shared_mem_dynamic",
    stream = "stream",
    sync_kind = "cuda_sync_kind",
    to_context = "toContext",
    to_device = "toDevice",
    total_allocated = "Total Allocated",
    unified_memory = "unified_memory",
    value = "value",
    wait_on_event = "wait_on_cuda_event_id",
    wait_on_record = "wait_on_cuda_event_record_corr_id",
    wait_on_stream = "wait_on_stream",
    warps_per_sm = "warps per SM",
}

impl Keys {
    pub(crate) fn intern(&self, text: &str) -> StrId {
        intern(self.recorder, StrId::NONE, text.as_bytes())
    }
}
