//! Arguments that our writers add for viewers, and that follow from what the hub has: they are
//! taken out again, so that every format gets what it got.

use crate::trace::{Dim3, Launch, StrId, StringTable, Value};

/// Of kernels, and of activities without one.
const SHOWN: [&str; 5] =
    ["grid_size", "workgroup_size", "thread_count", "process_id", "process_name"];
/// Of all activities of our own recordings, whose queue and call say them.
const PLACE: [&str; 3] = ["device", "stream", "correlation"];
/// The dimensions of a launch, when they stand with the kernel.
const GRID: &str = "launch.grid_size.";
const BLOCK: &str = "launch.workgroup_size.";

/// Whether our own writer made a trace, and of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Maker {
    /// It did not.
    #[default]
    Other,
    /// Of a file of another format.
    Converter,
    /// As it happened.
    Recording,
}

/// Takes them out of an activity's arguments. `call`: its correlation number.
pub(super) fn of_activity(
    entries: &mut Vec<(StrId, Value)>,
    strings: &StringTable,
    maker: Maker,
    call: u64,
) {
    if maker == Maker::Other {
        return;
    }
    entries.retain(|(name, value)| {
        let name = strings.get(*name);
        let submitted = name == "submission_id" && *value == Value::U64(call & 0xffff_ffff);
        let place = maker == Maker::Recording && PLACE.contains(&name);
        !(submitted || place || SHOWN.contains(&name))
    });
}

/// Takes the number of the launch out of a call's arguments.
pub(super) fn of_call(entries: &mut Vec<(StrId, Value)>, strings: &StringTable, maker: Maker) {
    if maker == Maker::Recording {
        entries.retain(|(name, _)| strings.get(*name) != "correlation");
    }
}

/// Takes them out of a kernel's arguments. Returns the dimensions of its launches, if those
/// are among them.
pub(super) fn of_kernel(
    entries: &mut Vec<(StrId, Value)>,
    strings: &StringTable,
    maker: Maker,
) -> Option<Launch> {
    if maker == Maker::Other {
        return None;
    }
    let mut launch = Launch::default();
    let kinetos = |entries: &[(StrId, Value)], name: &str| {
        entries.iter().any(|(known, _)| strings.get(*known) == name)
    };
    let registers = kinetos(entries, "registers per thread");
    let shared = kinetos(entries, "shared memory");
    entries.retain(|(name, value)| {
        let name = strings.get(*name);
        for (prefix, dims) in [(GRID, &mut launch.grid), (BLOCK, &mut launch.block)] {
            if let (Some(axis), Value::U64(extent)) = (name.strip_prefix(prefix), *value) {
                let dims = dims.get_or_insert_with(Dim3::default);
                let extent = u32::try_from(extent).unwrap_or(u32::MAX);
                match axis {
                    "x" => dims.x = extent,
                    "y" => dims.y = extent,
                    _ => dims.z = extent,
                }
                return false;
            }
        }
        let twice =
            registers && name == "registers_per_thread" || shared && name == "shared_mem_static";
        !(twice || PLACE.contains(&name) || SHOWN.contains(&name))
    });
    (launch != Launch::default()).then_some(launch)
}
