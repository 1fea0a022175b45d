//! What is read of vendors' structs, and by which numbers, for `tests/headers`, which compares it
//! with the vendors' headers.
//!
//! ```text
//! struct VENDOR NAME LEAST MOST FIELD=OFFSET …     bytes of a struct that is read so
//! enum VENDOR NAME VALUE
//! ```
//! A name may have alternatives (`a|b`: the first that there is); a `*` at its end stands for the
//! highest number that there is. A struct may have several lines: one must fit.

use std::fmt::Write as _;

use crate::amd::layout as amd;
use crate::amd::stream_ids;
use crate::amd::sys as rocprofiler;
use crate::hpu::layout as hpu;
use crate::nvidia::sys::kind as cupti;
use crate::xpu::layout as xpu;
use crate::xpu::names;
use crate::xpu::sys::kind as pti;

/// A struct's fields.
type Fields<'a> = &'a [(&'a str, usize)];

struct Table(String);

impl Table {
    fn add(&mut self, vendor: &str, name: &str, least: usize, most: usize, fields: Fields<'_>) {
        let _ = write!(self.0, "struct {vendor} {name} {least} {most}");
        for (field, at) in fields {
            let _ = write!(self.0, " {field}={at}");
        }
        self.0.push('\n');
    }

    fn number(&mut self, vendor: &str, name: &str, value: u64) {
        let _ = writeln!(self.0, "enum {vendor} {name} {value}");
    }
}

/// All lines.
pub fn expected() -> String {
    let mut table = Table(String::new());
    rocm(&mut table);
    intel(&mut table);
    gaudi(&mut table);
    nvidia(&mut table);
    table.0
}

const ANY: usize = usize::MAX;

fn rocm(table: &mut Table) {
    let mut of = |name: &str, least, most, fields: Fields<'_>| {
        table.add("amd", &format!("rocprofiler_{name}"), least, most, fields);
    };
    let head = [("size", 0), ("kind", 8), ("operation", 12)];
    let work = [
        ("correlation_id", amd::WORK.correlation),
        ("start_timestamp", amd::WORK.start),
        ("end_timestamp", amd::WORK.end),
    ];
    let info = amd::kernel::AGENT - 8;
    let fields = [&head[..], &work, &[("dispatch_info", info)]].concat();
    of("buffer_tracing_kernel_dispatch_record_t", amd::kernel::BYTES, ANY, &fields);
    let fields = [
        ("agent_id", amd::kernel::AGENT - info),
        ("queue_id", amd::kernel::QUEUE - info),
        ("kernel_id", amd::kernel::KERNEL - info),
        ("private_segment_size", amd::kernel::PRIVATE - info),
        ("group_segment_size", amd::kernel::GROUP - info),
        ("workgroup_size", amd::kernel::WORKGROUP - info),
        ("grid_size", amd::kernel::GRID - info),
    ];
    of("kernel_dispatch_info_t", 72, ANY, &fields);
    let own = [
        ("dst_agent_id", amd::copy::TO_AGENT),
        ("src_agent_id", amd::copy::FROM_AGENT),
        ("bytes", amd::copy::AMOUNT),
    ];
    let fields = [&head[..], &work, &own].concat();
    of("buffer_tracing_memory_copy_record_t", amd::copy::BYTES, ANY, &fields);
    for form in amd::SCRATCH {
        let own = [("agent_id", form.agent), ("queue_id", form.queue)];
        let mut fields = [&head[..], &times(form.times), &own].concat();
        fields.extend((form.amount != ANY).then_some(("allocation_size", form.amount)));
        of("buffer_tracing_scratch_memory_record_t", form.least, form.most, &fields);
    }
    for form in amd::ALLOCATION {
        let own = [
            ("agent_id", form.agent),
            ("address|starting_address", form.address),
            ("allocation_size", form.amount),
        ];
        let fields = [&head[..], &times(form.times), &own].concat();
        of("buffer_tracing_memory_allocation_record_t", form.least, form.most, &fields);
    }
    let own = [
        ("agent_id", amd::graph::AGENT),
        ("queue_id", amd::graph::QUEUE),
        ("graph_exec_id", amd::graph::EXEC),
        ("kernel_dispatch_count", amd::graph::KERNELS),
    ];
    let fields = [&head[..], &times(amd::graph::TIMES), &own].concat();
    of("buffer_tracing_hip_graph_record_t", amd::graph::BYTES, ANY, &fields);
    let ids = [("context_id", 0), ("thread_id", 8), ("correlation_id", 16)];
    for (size, more) in [(56, 0), (64, 8)] {
        let own = [("kind", 32), ("operation", 36), ("phase", 40), ("payload", 48)];
        let own = own.map(|(name, at)| (name, at + more));
        of("callback_tracing_record_t", size, size, &[&ids[..], &own].concat());
    }
    use std::mem::offset_of;

    use crate::amd::sys::KernelSymbol;
    let fields = [
        ("size", 0),
        ("kernel_id", offset_of!(KernelSymbol, kernel)),
        ("kernel_name", offset_of!(KernelSymbol, name)),
        ("group_segment_size", offset_of!(KernelSymbol, group_size)),
        ("private_segment_size", offset_of!(KernelSymbol, private_size)),
        ("sgpr_count", offset_of!(KernelSymbol, sgprs)),
        ("arch_vgpr_count", offset_of!(KernelSymbol, vgprs)),
        ("accum_vgpr_count", offset_of!(KernelSymbol, accum_vgprs)),
    ];
    let name = "callback_tracing_code_object_kernel_symbol_register_data_t";
    of(name, size_of::<KernelSymbol>(), ANY, &fields);
    of(
        "callback_tracing_hip_stream_data_t",
        24,
        ANY,
        &[("size", 0), ("stream_id", stream_ids::ID)],
    );
    of("client_id_t", 16, 16, &[("name", rocprofiler::client_name_at(rocprofiler::OLDEST))]);
    let new = rocprofiler::client_name_at(rocprofiler::CLIENT_ID_HAS_SIZE);
    of("client_id_t", 24, 24, &[("size", 0), ("name", new)]);
    of("record_header_t", 16, 16, &[("category", 0), ("kind", 4), ("payload", 8)]);
    let fields = [("size", 0), ("initialize", 8), ("finalize", 16), ("tool_data", 24)];
    of("tool_configure_result_t", 32, 32, &fields);
    use crate::amd::sys::agent;
    let fields = [
        ("size", agent::SIZE),
        ("id", agent::ID),
        ("type", agent::TYPE),
        ("mem_banks_count", agent::MEM_BANKS_COUNT),
        ("lds_size_in_kb", agent::LDS_SIZE_IN_KB),
        ("wave_front_size", agent::WAVE_FRONT_SIZE),
        ("cu_count", agent::CU_COUNT),
        ("gfx_target_version", agent::GFX_TARGET_VERSION),
        ("location_id", agent::LOCATION_ID),
        ("domain", agent::DOMAIN),
        ("mem_banks", agent::MEM_BANKS),
        ("name", agent::NAME),
        ("product_name", agent::PRODUCT_NAME),
        ("logical_node_type_id", agent::LOGICAL_NODE_TYPE_ID),
    ];
    of("agent_v0_t", agent::BYTES, agent::BYTES, &fields);
    let own = [("runtime_visibility", agent::VISIBILITY), ("uuid", agent::UUID)];
    of("agent_v0_t", 304, ANY, &[&fields[..], &own].concat());
    of("agent_mem_bank_t", 24, 24, &[("size_in_bytes", agent::MEM_BANK_SIZE)]);
    let mut number = |name: &str, value| table.number("amd", &format!("ROCPROFILER_{name}"), value);
    number("BUFFER_CATEGORY_TRACING", rocprofiler::CATEGORY_TRACING.into());
    number("BUFFER_POLICY_LOSSLESS", rocprofiler::POLICY_LOSSLESS as u64);
    number("CALLBACK_PHASE_ENTER", rocprofiler::PHASE_ENTER.into());
    number("CALLBACK_PHASE_EXIT", rocprofiler::PHASE_EXIT.into());
    number("CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER", rocprofiler::KERNEL_SYMBOL.into());
    number("AGENT_TYPE_GPU", agent::GPU.into());
    number("AGENT_INFO_VERSION_0", agent::VERSION_0 as u64);
    let copies = ["HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"];
    for (value, name) in (1..).zip(copies) {
        number(&format!("MEMORY_COPY_{name}"), value);
    }
    for (value, name) in (1..).zip(["ALLOC", "FREE", "ASYNC_RECLAIM"]) {
        number(&format!("SCRATCH_MEMORY_{name}"), value);
    }
    for (value, name) in (1..).zip(["ALLOCATE", "VMEM_ALLOCATE", "FREE", "VMEM_FREE"]) {
        number(&format!("MEMORY_ALLOCATION_{name}"), value);
    }
}

fn times(times: amd::Times) -> [(&'static str, usize); 3] {
    [
        ("correlation_id", times.correlation),
        ("start_timestamp", times.start),
        ("end_timestamp", times.end),
    ]
}

fn intel(table: &mut Table) {
    let common = |fields: xpu::Fields, id: &'static str, uuid: &'static str| {
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
    };
    let mut of = |name: &str, least, fields: Fields<'_>| {
        let name = format!("pti_view_record_{name}_v2|pti_view_record_{name}");
        table.add("intel", &name, least, ANY, fields);
    };
    let mut kernel = common(xpu::KERNEL, "_kernel_id", "_device_uuid");
    kernel.extend([("_source_file_name", 32), ("_source_line_number", 40)]);
    kernel.extend([("_sycl_task_begin_timestamp", 128), ("_sycl_enqk_begin_timestamp", 136)]);
    kernel.extend([("_sycl_node_id", 144), ("_sycl_invocation_id", 160)]);
    of("kernel", 168, &kernel);
    let mut copy = common(xpu::COPY, "_mem_op_id", "_device_uuid");
    copy.extend([("_memcpy_type", 4), ("_mem_src", 8), ("_mem_dst", 12), ("_bytes", 120)]);
    of("memory_copy", 136, &copy);
    let mut peer = common(xpu::PEER_COPY, "_mem_op_id", "_src_uuid");
    peer.extend([("_dst_uuid", xpu::PEER_COPY.uuid + 16), ("_bytes", 152)]);
    of("memory_copy_p2p", 168, &peer);
    let mut fill = common(xpu::FILL, "_mem_op_id", "_device_uuid");
    fill.extend([("_mem_type", 4), ("_bytes", 112), ("_value_for_set", 120)]);
    of("memory_fill", 136, &fill);
    of("external_correlation", 24, &[("_correlation_id", 4), ("_external_id", 8)]);
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
    table.number("intel", "PTI_API_CLASS_GPU_OPERATION_CORE", 1);
    table.number("intel", "PTI_ERROR_NOT_IMPLEMENTED", 2);
    table.number("intel", "PTI_ERROR_L0_LOCAL_PROFILING_NOT_SUPPORTED", 52);
}

fn gaudi(table: &mut Table) {
    let fields = [
        ("name", hpu::NAME),
        ("category", 8),
        ("type", 16),
        ("timestamp", 32),
        ("duration", 48),
        ("engineType", 64),
        ("engineIndex", 68),
        ("contextId", 72),
        ("arguments.dataType", hpu::DATA_TYPE),
        ("arguments.operation", hpu::OPERATION),
    ];
    let new = [
        ("arguments.recipeId", 96),
        ("arguments.recipeName", 104),
        ("arguments.streamHandle", 112),
        ("arguments.eventHandle", 120),
        ("arguments.extraArgs.count", 128),
        ("arguments.extraArgs.args", 136),
    ];
    let size = hpu::Layout::New.stride();
    table.add("gaudi", "synTraceEvent", size, size, &[&fields[..], &new].concat());
    let size = hpu::Layout::Old.stride();
    table.add("gaudi", "synTraceEvent", size, size, &fields);
    let numbers = [
        ("synSuccess", 0),
        ("synFail", 26),
        ("synTraceAll", 1),
        ("synTraceHost", 2),
        ("synTraceDevice", 3),
        ("synTraceFormatTEF", 1),
    ];
    for (name, value) in numbers {
        table.number("gaudi", name, value);
    }
}

fn nvidia(table: &mut Table) {
    let mut of = |name: &str, least, fields: Fields<'_>| {
        table.add("nvidia", &format!("CUpti_Activity{name}*"), least, ANY, fields);
    };
    let kernel = [
        ("registersPerThread", 6),
        ("start", 16),
        ("end", 24),
        ("deviceId", 40),
        ("contextId", 44),
        ("streamId", 48),
        ("gridX", 52),
        ("blockX", 64),
        ("staticSharedMemory", 76),
        ("dynamicSharedMemory", 80),
        ("localMemoryPerThread", 84),
        ("correlationId", 92),
        ("name", 104),
        ("graphNodeId", 144),
        ("graphId", 156),
        ("channelID", 168),
        ("channelType", 172),
        ("isDeviceLaunched", 208),
        ("priority", 216),
    ];
    of("Kernel", 200, &kernel);
    let placed = [("start", 16), ("end", 24), ("deviceId", 32), ("contextId", 36)];
    let placed = [&placed[..], &[("streamId", 40)]].concat();
    let graph = |at| [("graphNodeId", at), ("graphId", at + 8)];
    let copy = [("copyKind", 4), ("srcKind", 5), ("dstKind", 6), ("bytes", 8)];
    let own = [("correlationId", 44), ("channelID", 76), ("copyCount", 88)];
    of("Memcpy", 88, &[&copy[..], &placed, &own, &graph(64)].concat());
    let own = [("srcDeviceId", 44), ("dstDeviceId", 52), ("correlationId", 60)];
    of("MemcpyPtoP", 96, &[&copy[..], &placed, &own, &graph(72)].concat());
    let own = [("value", 4), ("bytes", 8), ("correlationId", 44), ("memoryKind", 50)];
    of("Memset", 88, &[&placed[..], &own, &graph(64)].concat());
    let whole = [("correlationId", 4), ("start", 8), ("end", 16), ("deviceId", 24)];
    let own = [("graphId", 28), ("contextId", 32), ("streamId", 36)];
    of("GraphTrace", 48, &[&whole[..], &own].concat());
    let fields = [("cbid", 4), ("start", 8), ("end", 16), ("threadId", 28), ("correlationId", 32)];
    of("API", 40, &fields);
    of("ExternalCorrelation", 24, &[("externalId", 8), ("correlationId", 16)]);
    of("Overhead", 40, &[("overheadKind", 4), ("start", 24), ("end", 32)]);
    of("Stream", 24, &[("contextId", 4), ("streamId", 8), ("priority", 12)]);
    of("Context", 16, &[("contextId", 4), ("deviceId", 8), ("nullStreamId", 14)]);
    let memory = [
        ("memoryOperationType", 4),
        ("memoryKind", 8),
        ("correlationId", 12),
        ("address", 16),
        ("bytes", 24),
        ("timestamp", 32),
        ("deviceId", 52),
    ];
    of("Memory", 112, &memory);
    let pool = [
        ("memoryPoolOperationType", 4),
        ("correlationId", 12),
        ("deviceId", 20),
        ("minBytesToKeep", 24),
        ("address", 32),
        ("size", 40),
        ("releaseThreshold", 48),
        ("timestamp", 56),
        ("utilizedSize", 64),
    ];
    of("MemoryPool", 72, &pool);
    let unified = [("counterKind", 4), ("value", 8), ("start", 16), ("end", 24), ("address", 32)];
    let own = [("srcId", 40), ("dstId", 44)];
    of("UnifiedMemoryCounter", 64, &[&unified[..], &own].concat());
    let kinds = [
        ("MEMCPY", cupti::MEMCPY),
        ("MEMSET", cupti::MEMSET),
        ("KERNEL", cupti::KERNEL),
        ("CONCURRENT_KERNEL", cupti::CONCURRENT_KERNEL),
        ("DRIVER", cupti::DRIVER),
        ("RUNTIME", cupti::RUNTIME),
        ("CONTEXT", cupti::CONTEXT),
        ("OVERHEAD", cupti::OVERHEAD),
        ("MEMCPY2", cupti::MEMCPY2),
        ("UNIFIED_MEMORY_COUNTER", cupti::UNIFIED_MEMORY_COUNTER),
        ("CUDA_EVENT", cupti::CUDA_EVENT),
        ("STREAM", cupti::STREAM),
        ("SYNCHRONIZATION", cupti::SYNCHRONIZATION),
        ("EXTERNAL_CORRELATION", cupti::EXTERNAL_CORRELATION),
        ("MEMORY2", cupti::MEMORY2),
        ("MEMORY_POOL", cupti::MEMORY_POOL),
        ("GRAPH_TRACE", cupti::GRAPH_TRACE),
    ];
    for (name, value) in kinds {
        table.number("nvidia", &format!("CUPTI_ACTIVITY_KIND_{name}"), value.into());
    }
}
