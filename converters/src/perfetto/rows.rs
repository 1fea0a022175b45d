//! Rows of files of other formats that Perfetto's UI would show without a name or where they
//! are in the way.

/// Kineto's moments about memory, and the row they get under their thread.
pub(super) const MEMORY: &str = "[memory]";
/// Arguments of these.
pub(super) const ALLOCATED: &str = "Total Allocated";
pub(super) const RESERVED: &str = "Total Reserved";

/// What the counter of a total is called; device -1 is the host.
pub(super) fn memory_row(device: i64, total: &str) -> String {
    let what = if total == ALLOCATED { "allocated" } else { "reserved" };
    match device {
        -1 => format!("CPU memory {what} (PyTorch)"),
        device => format!("GPU {device} memory {what} (PyTorch)"),
    }
}

/// Whether a counter is one of these.
pub(super) fn is_memory_row(name: &str) -> bool {
    let device = name.strip_prefix("GPU ").and_then(|rest| rest.split_once(' '));
    let device = device.and_then(|(number, _)| number.parse().ok()).unwrap_or(-1);
    [ALLOCATED, RESERVED].into_iter().any(|total| memory_row(device, total) == name)
}

/// Roots that only the profiler itself is interested in; and the row under which they are
/// folded.
pub(super) const OF_PROFILER: [&str; 3] = ["", "Spans", "Traces"];
pub(super) const PROFILER: &str = "Profiler";
/// What is shown of a row that has no name.
pub(super) const UNNAMED: &str = "Recording";
/// What says that a row was made for others.
pub(super) const MADE: &str = "What the profiler says of itself";
