//! CUPTI's.

use super::{ANY, Fields, Table};
use crate::nvidia::sys::kind as cupti;

pub(super) fn add(table: &mut Table) {
    let mut of = |name: &str, least, fields: Fields<'_>| {
        table.add("nvidia", &format!("CUpti_Activity{name}*"), least, ANY, fields);
    };
    work(&mut of);
    host(&mut of);
    memory(&mut of);
    numbers(table);
}

/// Adds a struct: its name, its least size, its fields.
type Add<'a> = &'a mut dyn FnMut(&str, usize, Fields<'_>);

fn work(of: Add<'_>) {
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
}

fn host(of: Add<'_>) {
    let fields = [("cbid", 4), ("start", 8), ("end", 16), ("threadId", 28), ("correlationId", 32)];
    of("API", 40, &fields);
    of("ExternalCorrelation", 24, &[("externalId", 8), ("correlationId", 16)]);
    of("Overhead", 40, &[("overheadKind", 4), ("start", 24), ("end", 32)]);
    of("Stream", 24, &[("contextId", 4), ("streamId", 8), ("priority", 12)]);
    of("Context", 16, &[("contextId", 4), ("deviceId", 8), ("nullStreamId", 14)]);
}

fn memory(of: Add<'_>) {
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
}

fn numbers(table: &mut Table) {
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
