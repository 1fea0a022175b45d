//! rocprofiler-sdk's.

use std::mem::offset_of;

use super::{ANY, Fields, Table};
use crate::amd::layout as amd;
use crate::amd::stream_ids;
use crate::amd::sys as rocprofiler;
use crate::amd::sys::{KernelSymbol, agent};

/// The beginning of every record.
const HEAD: [(&str, usize); 3] = [("size", 0), ("kind", 8), ("operation", 12)];

pub(super) fn add(table: &mut Table) {
    let mut of = |name: &str, least, most, fields: Fields<'_>| {
        table.add("amd", &format!("rocprofiler_{name}"), least, most, fields);
    };
    work(&mut of);
    memory(&mut of);
    pages(&mut of);
    callbacks(&mut of);
    agents(&mut of);
    numbers(table);
}

/// Adds a struct: its name, its least and its greatest size, its fields.
type Add<'a> = &'a mut dyn FnMut(&str, usize, usize, Fields<'_>);

fn work(of: Add<'_>) {
    let work = [
        ("correlation_id", amd::WORK.correlation),
        ("start_timestamp", amd::WORK.start),
        ("end_timestamp", amd::WORK.end),
    ];
    let info = amd::kernel::AGENT - 8;
    let fields = [&HEAD[..], &work, &[("dispatch_info", info)]].concat();
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
    let fields = [&HEAD[..], &work, &own].concat();
    of("buffer_tracing_memory_copy_record_t", amd::copy::BYTES, ANY, &fields);
    let own = [
        ("agent_id", amd::graph::AGENT),
        ("queue_id", amd::graph::QUEUE),
        ("graph_exec_id", amd::graph::EXEC),
        ("kernel_dispatch_count", amd::graph::KERNELS),
    ];
    let fields = [&HEAD[..], &times(amd::graph::TIMES), &own].concat();
    of("buffer_tracing_hip_graph_record_t", amd::graph::BYTES, ANY, &fields);
    let own = [
        ("agent_id", amd::event::AGENT),
        ("queue_id", amd::event::QUEUE),
        ("hip_event_handle", amd::event::HANDLE),
        ("source_queue_id", amd::event::SOURCE),
    ];
    let fields = [&HEAD[..], &work, &own].concat();
    of("buffer_tracing_hip_event_record_t", amd::event::BYTES, ANY, &fields);
}

/// What the driver reports of pages.
fn pages(of: Add<'_>) {
    use amd::{fault, migration};
    let times =
        [("start_timestamp", migration::TIMES.start), ("end_timestamp", migration::TIMES.end)];
    let own = [
        ("start_address", migration::FROM),
        ("end_address", migration::TO),
        ("src_agent", migration::FROM_AGENT),
        ("dst_agent", migration::TO_AGENT),
        ("error_code", migration::ERROR),
    ];
    let fields = [&HEAD[..], &times, &own].concat();
    of("buffer_tracing_kfd_page_migrate_record_t", migration::BYTES, ANY, &fields);
    let own = [("agent_id", fault::AGENT), ("address", fault::ADDRESS)];
    let fields = [&HEAD[..], &times, &own].concat();
    of("buffer_tracing_kfd_page_fault_record_t", fault::BYTES, ANY, &fields);
}

fn memory(of: Add<'_>) {
    for form in amd::SCRATCH {
        let own = [("agent_id", form.agent), ("queue_id", form.queue)];
        let mut fields = [&HEAD[..], &times(form.times), &own].concat();
        fields.extend((form.amount != ANY).then_some(("allocation_size", form.amount)));
        of("buffer_tracing_scratch_memory_record_t", form.least, form.most, &fields);
    }
    for form in amd::ALLOCATION {
        let own = [
            ("agent_id", form.agent),
            ("address|starting_address", form.address),
            ("allocation_size", form.amount),
        ];
        let fields = [&HEAD[..], &times(form.times), &own].concat();
        of("buffer_tracing_memory_allocation_record_t", form.least, form.most, &fields);
    }
}

fn callbacks(of: Add<'_>) {
    let ids = [("context_id", 0), ("thread_id", 8), ("correlation_id", 16)];
    for (size, more) in [(56, 0), (64, 8)] {
        let own = [("kind", 32), ("operation", 36), ("phase", 40), ("payload", 48)];
        let own = own.map(|(name, at)| (name, at + more));
        of("callback_tracing_record_t", size, size, &[&ids[..], &own].concat());
    }
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
}

fn agents(of: Add<'_>) {
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
}

fn numbers(table: &mut Table) {
    let mut number = |name: &str, value| table.number("amd", &format!("ROCPROFILER_{name}"), value);
    number("BUFFER_CATEGORY_TRACING", rocprofiler::CATEGORY_TRACING.into());
    number("BUFFER_POLICY_LOSSLESS", rocprofiler::POLICY_LOSSLESS as u64);
    number("CALLBACK_PHASE_ENTER", rocprofiler::PHASE_ENTER.into());
    number("CALLBACK_PHASE_EXIT", rocprofiler::PHASE_EXIT.into());
    number("CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER", rocprofiler::KERNEL_SYMBOL.into());
    number("AGENT_TYPE_GPU", agent::GPU.into());
    number("AGENT_INFO_VERSION_0", agent::VERSION_0 as u64);
    number("HIP_EVENT_WAIT", amd::event::WAIT.into());
    for (value, name) in (0..).zip(["PREFETCH", "PAGEFAULT_GPU", "PAGEFAULT_CPU", "TTM_EVICTION"]) {
        number(&format!("KFD_PAGE_MIGRATE_{name}"), value);
    }
    let faults = ["READ_FAULT_MIGRATED", "READ_FAULT_UPDATED", "WRITE_FAULT_MIGRATED"];
    for (value, name) in (0..).zip(faults.into_iter().chain(["WRITE_FAULT_UPDATED"])) {
        number(&format!("KFD_PAGE_FAULT_{name}"), value);
    }
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
