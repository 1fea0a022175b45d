//! What `kymo doctor` says about Intel GPUs. Runs in a process of its own.

use super::levelzero;
use super::library;
use super::sys::{NOT_IMPLEMENTED, Version};
use crate::device::finding::Finding;
use crate::source::Settings;

/// Looks for Level Zero and PTI, and initialises them.
pub fn probe(settings: &Settings, say: &mut dyn FnMut(Finding)) {
    let Some(zero) = levelzero::loader(true) else {
        let advice = "no Intel GPU will be seen; install libze1 and Intel's compute runtime to \
                      change that";
        return say(Finding::absent("Level Zero", "no libze_loader.so.1", advice));
    };
    let devices = levelzero::devices(zero);
    let works = devices.is_ok();
    say(match devices {
        Ok(devices) => {
            let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
            Finding::good("Level Zero", names.join(", "))
        }
        Err(why) => {
            let advice = "no Intel GPU will be seen; /dev/dri/renderD* must be readable for that";
            Finding::absent("Level Zero", why.to_string(), advice)
        }
    });
    let found = match library::pti(settings.pti_path.as_deref()) {
        Ok(found) => found,
        Err(why) => {
            let advice = "programs that bring their own (PyTorch does) are recorded all the same";
            return say(Finding::absent("Intel PTI", why.to_string(), advice));
        }
    };
    let Version { major, minor, patch } = found.version;
    let path = found.path.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let what = format!("{major}.{minor}.{patch} ({path})");
    if !works {
        // It must not be asked: it would abort.
        return say(Finding::absent("Intel PTI", what, "it needs a driver of Level Zero"));
    }
    // SAFETY: Level Zero works, as was just seen.
    let asked = found.pti.local_available.map(|available| unsafe { available() });
    if asked == Some(NOT_IMPLEMENTED) {
        let advice = "install libxptifw.so (pip install intel-cmplr-lib-rt) and libze1 of 1.9 or \
                      later";
        let what = format!("{what} cannot load libpti.so");
        return say(Finding::bad("Intel PTI", what, advice));
    }
    say(Finding::good("Intel PTI", what));
    let names = "kernel, gpu_memcpy, gpu_memset, xpu_runtime, xpu_driver, xpu_sync, \
                 collective_comm, overhead, external_correlation";
    say(Finding::good("XPU activity", format!("{names} can be recorded")));
}
