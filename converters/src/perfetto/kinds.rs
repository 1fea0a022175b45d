//! Names of packets by the field that makes them, for counts and warnings.

/// What a packet with this field of `TracePacket` is called.
pub fn name(field: u32) -> Option<&'static str> {
    Some(match field {
        1 => "ftrace_events",
        2 => "process_tree",
        4 => "inode_file_map",
        5 => "chrome_events",
        6 => "clock_snapshot",
        7 => "sys_stats",
        9 => "process_stats",
        11 => "track_event",
        33 => "trace_config",
        34 => "ftrace_stats",
        35 => "trace_stats",
        36 => "synchronization_marker",
        37 => "profile_packet",
        38 => "battery",
        39 => "android_log",
        40 => "power_rails",
        43 => "process_descriptor",
        44 => "thread_descriptor",
        45 => "system_info",
        46 => "trigger",
        47 => "packages_list",
        48 => "chrome_benchmark_metadata",
        50 => "compressed_packets",
        51 => "chrome_metadata",
        52 => "gpu_counter_event",
        53 => "gpu_render_stage_event",
        54 => "streaming_profile_packet",
        55 => "streaming_allocation",
        56 => "heap_graph",
        60 => "track_descriptor",
        61 => "module_symbols",
        62 => "vulkan_memory_event",
        63 => "gpu_log",
        64 => "perf_sample",
        65 => "vulkan_api_event",
        66 => "extension_descriptor_old",
        67 => "cpu_info",
        69 => "service_event",
        71 => "gpu_mem_total_event",
        72 => "extension_descriptor",
        76 => "frame_timeline_event",
        89 => "trace_uuid",
        126 => "trace_attributes",
        128 => "gpu_info",
        129 => "generic_gpu_frequency_event",
        133 => "zstd_compressed_packets",
        135 => "stack_sample",
        900 => "for_testing",
        _ => return None,
    })
}

/// Whether packets of this kind hold nothing that the hub could hold: markers and settings.
pub fn says_nothing(field: u32) -> bool {
    matches!(field, 33 | 34 | 36 | 46 | 69 | 900)
}
