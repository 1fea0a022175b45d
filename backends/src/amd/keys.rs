//! Names of arguments, as Kineto writes them where it has them.

use kymograph_protos::{Recorder, StrId};

macro_rules! keys {
    ($($field:ident = $text:literal,)*) => {
        /// Ids of the names.
        #[derive(Clone, Copy)]
        pub(crate) struct Keys {
            $(pub(crate) $field: StrId,)*
        }

        impl Keys {
            pub(crate) fn new(recorder: &dyn Recorder) -> Keys {
                let id = |text: &str| recorder.intern(StrId::NONE, text.as_bytes());
                Keys { $($field: id($text),)* }
            }
        }
    };
}

keys! {
    accum_vgprs = "accum VGPRs",
    address = "Addr",
    api = "api",
    bandwidth = "memory bandwidth (GB/s)",
    block = "block",
    bytes = "bytes",
    cid = "cid",
    context = "context",
    correlation = "correlation",
    count = "count",
    device = "device",
    from_device = "fromDevice",
    graph_exec = "graph exec id",
    grid = "grid",
    hsa_queue = "hsa_queue",
    kernels = "kernels",
    kind = "kind",
    peer = "peer",
    pointer = "ptr",
    private_per_work_item = "local memory per thread",
    registers = "registers per thread",
    root = "root",
    sgprs = "SGPRs",
    shared = "shared memory",
    shared_dynamic = "shared_mem_dynamic",
    source = "src",
    stream = "stream",
    target = "dst",
    to_device = "toDevice",
}
