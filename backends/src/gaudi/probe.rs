//! What `kymo doctor` says about Gaudi. Runs in a process of its own.

use super::library;
use super::sys::SUCCESS;
use crate::device::finding::Finding;
use crate::source::Settings;

/// Looks for Synapse and counts its devices; acquires none, since each is one process's.
pub fn probe(_settings: &Settings, say: &mut dyn FnMut(Finding)) {
    let synapse = match library::synapse(true) {
        None => {
            let advice = "no Gaudi accelerator will be seen; install SynapseAI to change that";
            return say(Finding::absent("Synapse", "no libSynapse.so", advice));
        }
        Some(Err(why)) => {
            let advice = "this release cannot be recorded: install a newer SynapseAI";
            return say(Finding::bad("Synapse", why.to_string(), advice));
        }
        Some(Ok(synapse)) => synapse,
    };
    let (Some(initialize), Some(count)) = (synapse.initialize, synapse.count) else {
        return say(Finding::good("Synapse", "libSynapse.so"));
    };
    let mut devices = 0;
    // SAFETY: stores a number.
    let result = unsafe {
        match initialize() {
            SUCCESS => count(&mut devices),
            error => error,
        }
    };
    if result != SUCCESS || devices == 0 {
        let why = format!("libSynapse.so finds no device (synStatus {result})");
        return say(Finding::absent("Synapse", why, "no Gaudi accelerator will be seen"));
    }
    let plural = if devices == 1 { "" } else { "s" };
    say(Finding::good("Synapse", format!("{devices} device{plural}")));
    let what = "kernel, gpu_memcpy, gpu_memset, collective_comm, privateuse1_runtime can be \
                recorded; HABANA_PROFILE is set by kymo record";
    say(Finding::good("Gaudi activity", what));
}
