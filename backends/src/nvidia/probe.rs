//! What `kymo doctor` says about NVIDIA. Runs in a process of its own.

use std::ffi::c_void;
use std::ptr;

use super::callbacks;
use super::collect::other_tool;
use super::library::{self, describe};
use super::sys::{Cupti, SUCCESS};
use crate::device::finding::Finding;
use crate::source::Settings;

/// Looks for the driver and CUPTI, initialises them and takes nothing that it does not
/// give back.
pub fn probe(settings: &Settings, say: &mut dyn FnMut(Finding)) {
    activities(settings, say);
    match counters() {
        Some(false) => say(Finding::good("GPU counters", "everybody may read them")),
        Some(true) => say(Finding::absent(
            "GPU counters",
            "only administrators may read them",
            "activities need none; for counters set NVreg_RestrictProfilingToAdminUsers=0",
        )),
        None => {}
    }
}

fn activities(settings: &Settings, say: &mut dyn FnMut(Finding)) {
    const WORK: &str = "kernels and copies of CUDA programs";
    let Some(cuda) = library::driver(true) else {
        let advice = format!("no {WORK} will be seen; install the driver to change that");
        say(Finding::absent("NVIDIA GPU", "no driver library", advice));
        return;
    };
    say(Finding::good("NVIDIA GPU", format!("libcuda.so.1 is here: {WORK}")));
    let (mut version, mut count) = (0, 0);
    // SAFETY: 0 is the only flag there is; the others store numbers.
    let result = unsafe {
        (cuda.driver_version)(&mut version);
        match (cuda.init)(0) {
            0 => (cuda.device_count)(&mut count),
            error => error,
        }
    };
    let version = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    if result != 0 {
        let why = format!("{version}, but cuInit says {result}");
        say(Finding::absent("CUDA driver", why, "no CUDA program runs here"));
        return;
    }
    let plural = if count == 1 { "" } else { "s" };
    say(Finding::good("CUDA driver", format!("{version}, {count} device{plural}")));
    match library::cupti(cuda, settings.cupti_path.as_deref()) {
        Ok(found) => {
            let path = found.path.as_ref().map_or_else(String::new, |p| p.display().to_string());
            say(Finding::good("CUPTI", format!("version {} ({path})", found.version)));
            say(is_free(&found.cupti));
        }
        Err(why) => {
            let advice = "programs that bring their own (PyTorch does) are recorded all the same";
            say(Finding::absent("CUPTI", why.to_string(), advice));
        }
    }
}

/// Whether CUPTI is free, or which tool has it.
fn is_free(cupti: &Cupti) -> Finding {
    const NAME: &str = "CUDA activity";
    let mut subscriber: *mut c_void = ptr::null_mut();
    // SAFETY: a handle that is given back at once, if there is one.
    let result = unsafe {
        let result = (cupti.subscribe)(&mut subscriber, callbacks::callback, ptr::null_mut());
        if result == SUCCESS {
            (cupti.unsubscribe)(subscriber);
        }
        result
    };
    if result == SUCCESS {
        let names = "kernel, gpu_memcpy, gpu_memset, cuda_runtime, cuda_driver, cuda_sync, \
                     overhead, external_correlation, graph_trace, memory, memory_pool, \
                     unified_memory";
        return Finding::good(NAME, format!("{names} can be recorded"));
    }
    let tool = other_tool().unwrap_or("another tool");
    let advice = "CUPTI serves one tool at a time: stop the other one";
    Finding::bad(NAME, format!("{tool}: {}", describe(cupti, result)), advice)
}

/// The driver's option `NVreg_RestrictProfilingToAdminUsers`.
fn counters() -> Option<bool> {
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").ok()?;
    let line = parameters.lines().find(|line| line.starts_with("RmProfilingAdminOnly"))?;
    Some(line.split(':').nth(1)?.trim() != "0")
}
