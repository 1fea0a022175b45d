//! Which kind of event a category stands for, in Kineto's words and in ours: the one place that
//! knows work on devices from everything else.

use super::{Stage, StageKind, Trace};

/// Where the events of a category belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// On the row that the event names.
    Host,
    /// Likewise; and it may have launched something.
    Call,
    /// On a device.
    Work(Work),
    /// Beside a queue.
    Notes,
    /// Beside a queue: waits and events.
    Sync,
    /// To the process, when it is on row -1.
    Overhead,
}

/// Kinds of work on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Kernel,
    Copy,
    Set,
}

/// The class of a category.
pub(crate) fn class(category: &str) -> Class {
    match category {
        "kernel" | "Kernel" | "mtia_ccp_events" => Class::Work(Work::Kernel),
        "gpu_memcpy" | "Memcpy" => Class::Work(Work::Copy),
        "gpu_memset" | "Memset" => Class::Work(Work::Set),
        "gpu_user_annotation" => Class::Notes,
        "cuda_sync" | "cuda_event" => Class::Sync,
        "overhead" => Class::Overhead,
        "Runtime"
        | "cuda_runtime"
        | "cuda_driver"
        | "xpu_runtime"
        | "xpu_driver"
        | "mtia_runtime"
        | "privateuse1_runtime"
        | "privateuse1_driver"
        | "glow_runtime" => Class::Call,
        _ => Class::Host,
    }
}

impl Work {
    /// The stage. Its description is the category, which tells apart who wrote it.
    pub(crate) fn stage(self, trace: &mut Trace, category: &str) -> Stage {
        let (name, kind) = match self {
            Work::Kernel => ("Kernel", StageKind::Compute),
            Work::Copy => ("MemoryTransfer", StageKind::Other),
            Work::Set => ("MemorySet", StageKind::Other),
        };
        let name = trace.strings.intern(name);
        Stage { name, description: trace.strings.intern(category), kind }
    }
}

/// The category of a stage's activities.
pub(crate) fn work_category<'a>(trace: &'a Trace, stage: Option<&Stage>) -> &'a str {
    let Some(stage) = stage else { return "kernel" };
    let description = trace.strings.get(stage.description);
    if matches!(class(description), Class::Work(_)) {
        return description;
    }
    match trace.strings.get(stage.name) {
        "MemoryTransfer" => "gpu_memcpy",
        "MemorySet" => "gpu_memset",
        "Kernel" => "kernel",
        _ if stage.kind == StageKind::Compute => "kernel",
        // Waits, collectives and the like: work that is not a kernel's.
        name => name,
    }
}
