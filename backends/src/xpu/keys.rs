//! Names of arguments and categories, as Kineto writes them.

use crate::vendor::intern::intern;
use kymograph_protos::{Recorder, StrId};

macro_rules! keys {
    ($($field:ident = $text:literal,)*) => {
        /// Ids of the names.
        #[derive(Clone, Copy)]
        pub(crate) struct Keys {
            recorder: &'static dyn Recorder,
            $(pub(crate) $field: StrId,)*
        }

        impl Keys {
            pub(crate) fn new(recorder: &'static dyn Recorder) -> Keys {
                let id = |text: &str| intern(recorder, StrId::NONE, text.as_bytes());
                Keys { recorder, $($field: id($text),)* }
            }
        }
    };
}

keys! {
    api = "api",
    appended = "appended",
    bandwidth = "memory bandwidth (GB/s)",
    bytes = "bytes",
    collective = "collective_comm",
    communicator = "Communicator_id",
    context = "context",
    context_handle = "Context_handle",
    correlation = "correlation",
    device = "device",
    driver = "xpu_driver",
    engine = "engine",
    event_handle = "Event_handle",
    external = "External id",
    from_device = "fromDevice",
    kernel_id = "kernel_id",
    l0_call = "l0 call",
    l0_queue = "l0 queue",
    // So it is spelt in Kineto.
    memory_operation = "memory opration id",
    overhead = "overhead",
    overhead_cost = "overhead cost",
    overhead_count = "overhead count",
    queue_handle = "Queue_handle",
    receive = "receive bytes",
    return_code = "Return_code",
    runtime = "xpu_runtime",
    send = "send bytes",
    source_file = "source_file_name",
    source_line = "source_line_number",
    stream = "stream",
    submitted = "submitted",
    sycl_begin = "sycl_task_begin",
    sycl_enqueue = "sycl_enqk_begin",
    sycl_invocation = "sycl_invocation_id",
    sycl_node = "sycl_node_id",
    sycl_queue = "sycl queue",
    sync = "xpu_sync",
    sync_type = "Type",
    thread = "thread",
    to_device = "toDevice",
    value = "value",
    wait_events = "Number_wait_events",
}

impl Keys {
    pub(crate) fn intern(&self, text: &str) -> StrId {
        intern(self.recorder, StrId::NONE, text.as_bytes())
    }
}
