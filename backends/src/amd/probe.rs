//! What `kymo doctor` says about AMD. Runs in a process of its own.

use super::device::Agents;
use super::library;
use super::sys::{Entry, OLDEST, Sdk, describe};
use crate::device::finding::Finding;
use crate::source::Settings;

const GPU: &str = "AMD GPU";
const SDK: &str = "rocprofiler-sdk";
const WORK: &str = "kernels and copies of HIP programs";

/// Looks for rocprofiler-sdk and the devices that it sees, and configures nothing.
pub fn probe(_settings: &Settings, say: &mut dyn FnMut(Finding)) {
    let device = std::path::Path::new("/dev/kfd");
    let Some(found) = library::load() else {
        let (what, advice) = match device.exists() {
            true => ("the driver is here, but no librocprofiler-sdk.so", "install rocprofiler-sdk"),
            false => ("no driver and no librocprofiler-sdk.so", "install ROCm"),
        };
        say(Finding::absent(GPU, what, format!("no {WORK} will be seen; {advice} to change that")));
        return;
    };
    let path = library::shown_path(found);
    let broken = |missing: &std::ffi::CStr| {
        let why = format!("{path} has no {}", missing.to_string_lossy());
        Finding::bad(SDK, why, "install rocprofiler-sdk of ROCm 6.3 or later")
    };
    let (entry, sdk) = match (Entry::find(found), Sdk::find(found)) {
        (Ok(entry), Ok(sdk)) => (entry, sdk),
        (Err(missing), _) | (_, Err(missing)) => return say(broken(missing)),
    };
    match library::version(&entry) {
        Some(version) if version >= OLDEST => {
            say(Finding::good(SDK, format!("{} ({path})", library::shown(version))));
        }
        version => {
            let shown = version.map_or_else(|| "unknown".to_owned(), library::shown);
            let advice = "0.5.0 is needed: install rocprofiler-sdk of ROCm 6.3 or later";
            return say(Finding::bad(SDK, format!("version {shown} ({path})"), advice));
        }
    }
    say(match Agents::learn(&sdk) {
        Ok(agents) if agents.count() > 0 => {
            let count = agents.count();
            let plural = if count == 1 { "" } else { "s" };
            Finding::good(GPU, format!("{count} device{plural}: {WORK}"))
        }
        Ok(_) => {
            let advice = match device.exists() {
                true => "add this user to the groups render and video",
                false => "load the kernel module amdgpu",
            };
            Finding::absent(GPU, "no device that this user may open", advice)
        }
        Err(error) => {
            let why = describe(error, sdk.status_string);
            Finding::bad(GPU, format!("its devices cannot be listed: {why}"), "look at dmesg")
        }
    });
    environment(say);
}

/// Variables that keep tools away from ROCm.
fn environment(say: &mut dyn FnMut(Finding)) {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let off = ["0", "false", "no", "off"];
    if let Some(value) = set("ROCPROFILER_REGISTER_ENABLED")
        && off.contains(&value.to_ascii_lowercase().as_str())
    {
        let what = format!("ROCPROFILER_REGISTER_ENABLED is {value}");
        say(Finding::bad("ROCm hook", what, "unset it: HIP tells no tool of itself"));
    }
    for path in set("ROCP_TOOL_LIBRARIES").iter().flat_map(|list| list.split(':')) {
        if path.contains('/') && !std::path::Path::new(path).exists() {
            let what = format!("ROCP_TOOL_LIBRARIES has {path}, which is not there");
            say(Finding::bad("ROCm hook", what, "correct it: HIP programs end with this"));
        }
    }
    if let Some(value) = set("HSA_TOOLS_LIB") {
        let what = format!("HSA_TOOLS_LIB is {value}");
        let advice = "unset it if HIP programs are not recorded: it belongs to older tools";
        say(Finding::absent("ROCm hook", what, advice));
    }
}
