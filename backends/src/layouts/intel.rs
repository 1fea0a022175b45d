//! PTI's.

use super::{ANY, Fields, Table};
use crate::intel::layout;
use crate::intel::names;
use crate::intel::sys;
use crate::intel::sys::kind as pti;

pub(super) fn add(table: &mut Table) {
    let mut of = |name: &str, least, fields: Fields<'_>| {
        let name = format!("pti_view_record_{name}_v2|pti_view_record_{name}");
        table.add("intel", &name, least, ANY, fields);
    };
    work(&mut of);
    host(&mut of);
    collectives(table);
    numbers(table);
}

/// Adds a struct: its name, its least size, its fields.
type Add<'a> = &'a mut dyn FnMut(&str, usize, Fields<'_>);

/// What records of work have in common.
fn common(
    fields: layout::Fields,
    id: &'static str,
    uuid: &'static str,
) -> Vec<(&'static str, usize)> {
    vec![
        ("_queue_handle", fields.queue),
        ("_context_handle", fields.context),
        ("_name", fields.name),
        (uuid, fields.uuid),
        (id, fields.id),
        ("_correlation_id", fields.correlation),
        ("_append_timestamp", fields.append),
        ("_start_timestamp", fields.start),
        ("_end_timestamp", fields.end),
        ("_submit_timestamp", fields.submit),
        ("_sycl_queue_id", fields.sycl_queue),
    ]
}

fn work(of: Add<'_>) {
    let mut kernel = common(layout::KERNEL, "_kernel_id", "_device_uuid");
    kernel.extend([("_source_file_name", 32), ("_source_line_number", 40)]);
    kernel.extend([("_sycl_task_begin_timestamp", 128), ("_sycl_enqk_begin_timestamp", 136)]);
    kernel.extend([("_sycl_node_id", 144), ("_sycl_invocation_id", 160)]);
    of("kernel", 168, &kernel);
    let mut copy = common(layout::COPY, "_mem_op_id", "_device_uuid");
    copy.extend([("_memcpy_type", 4), ("_mem_src", 8), ("_mem_dst", 12), ("_bytes", 120)]);
    of("memory_copy", 136, &copy);
    let mut peer = common(layout::PEER_COPY, "_mem_op_id", "_src_uuid");
    peer.extend([("_dst_uuid", layout::PEER_COPY.uuid + 16), ("_bytes", 152)]);
    of("memory_copy_p2p", 168, &peer);
    let mut fill = common(layout::FILL, "_mem_op_id", "_device_uuid");
    fill.extend([("_mem_type", 4), ("_bytes", 112), ("_value_for_set", 120)]);
    of("memory_fill", 136, &fill);
    of("external_correlation", 24, &[("_correlation_id", 4), ("_external_id", 8)]);
}

fn host(of: Add<'_>) {
    let call = [
        ("_start_timestamp", 8),
        ("_end_timestamp", 16),
        ("_api_group", 24),
        ("_api_id", 28),
        ("_thread_id", 36),
        ("_correlation_id", 40),
        ("_return_code", 44),
    ];
    of("api", 48, &call);
    let overhead = [
        ("_overhead_start_timestamp_ns", 8),
        ("_overhead_end_timestamp_ns", 16),
        ("_overhead_thread_id", 24),
        ("_overhead_count", 32),
        ("_overhead_duration_ns", 40),
        ("_overhead_kind", 48),
    ];
    of("overhead", 56, &overhead);
    let wait = [
        ("_synch_type", 4),
        ("_context_handle", 8),
        ("_queue_handle", 16),
        ("_event_handle", 24),
        ("_start_timestamp", 32),
        ("_end_timestamp", 40),
        ("_thread_id", 48),
        ("_correlation_id", 52),
        ("_number_wait_events", 56),
        ("_return_code", 60),
        ("_api_id", 64),
        ("_api_group", 68),
    ];
    of("synchronization", 72, &wait);
}

fn collectives(table: &mut Table) {
    let collective = [
        ("_start_timestamp", 8),
        ("_end_timestamp", 16),
        ("_thread_id", 28),
        ("_communicator_id", 48),
        ("_name", 56),
    ];
    // Those of 0.17 (56 bytes) are not read.
    table.add("intel", "pti_view_record_comms", 56, 56, &[]);
    table.add("intel", "pti_view_record_comms", 64, ANY, &collective);
}

fn numbers(table: &mut Table) {
    let kinds = [
        ("DEVICE_GPU_KERNEL", pti::KERNEL),
        ("DRIVER_API", pti::DRIVER_API),
        ("COLLECTION_OVERHEAD", pti::OVERHEAD),
        ("RUNTIME_API", pti::RUNTIME_API),
        ("EXTERNAL_CORRELATION", pti::EXTERNAL_CORRELATION),
        ("DEVICE_GPU_MEM_COPY", pti::COPY),
        ("DEVICE_GPU_MEM_FILL", pti::FILL),
        ("DEVICE_GPU_MEM_COPY_P2P", pti::PEER_COPY),
        ("DEVICE_SYNCHRONIZATION", pti::SYNCHRONIZATION),
        ("COMMUNICATION", pti::COMMUNICATION),
    ];
    for (name, value) in kinds {
        table.number("intel", &format!("PTI_VIEW_{name}"), value.into());
    }
    for (value, name) in (0..).zip(names::WAITS) {
        table.number("intel", &format!("PTI_VIEW_SYNCHRONIZATION_TYPE_{name}"), value);
    }
    for (value, (name, _)) in (names::FIRST_OVERHEAD.into()..).zip(names::OVERHEADS) {
        table.number("intel", &format!("PTI_VIEW_OVERHEAD_KIND_{name}"), value);
    }
    let class =
        |name: &str, value: std::ffi::c_int| (format!("PTI_API_CLASS_{name}"), value as u64);
    for (name, value) in [
        class("GPU_OPERATION_CORE", sys::CLASS_GPU_OPERATION_CORE),
        class("ALL", sys::CLASS_ALL),
        ("PTI_API_GROUP_OPENCL".to_owned(), sys::GROUP_OPENCL.into()),
    ] {
        table.number("intel", &name, value);
    }
    table.number("intel", "PTI_ERROR_NOT_IMPLEMENTED", 2);
    table.number("intel", "PTI_ERROR_L0_LOCAL_PROFILING_NOT_SUPPORTED", 52);
}
