//! What `kymo doctor` says about NVIDIA. Runs in a process of its own.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use super::callbacks;
use super::collect::{describe, other_tool};
use super::library;
use super::sys::SUCCESS;

/// What can be recorded of CUDA in this process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Findings {
    /// The driver's version and how many devices it has; or what is wrong with it.
    pub driver: Option<Result<String, String>>,
    /// CUPTI's version and path; or why there is none.
    pub cupti: Option<Result<String, String>>,
    /// Whether CUPTI is free, or who has it.
    pub free: Option<Result<(), String>>,
    /// Whether only administrators may read hardware counters, if that is known.
    pub counters_restricted: Option<bool>,
}

/// Looks for the driver and CUPTI, initialises them and takes nothing that it does not
/// give back.
pub fn probe(cupti_path: Option<&Path>) -> Findings {
    let mut findings = Findings { counters_restricted: counters(), ..Findings::default() };
    let Some(cuda) = library::driver(true) else { return findings };
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
        findings.driver = Some(Err(format!("{version}, but cuInit says {result}")));
        return findings;
    }
    let plural = if count == 1 { "" } else { "s" };
    findings.driver = Some(Ok(format!("{version}, {count} device{plural}")));
    let found = match library::cupti(cuda, cupti_path) {
        Ok(found) => found,
        Err(why) => {
            findings.cupti = Some(Err(why));
            return findings;
        }
    };
    let path = found.path.as_ref().map_or_else(String::new, |p| p.display().to_string());
    findings.cupti = Some(Ok(format!("version {} ({path})", found.version)));
    let mut subscriber: *mut c_void = ptr::null_mut();
    // SAFETY: a handle that is given back at once, if there is one.
    let result = unsafe {
        let subscribe = found.cupti.subscribe;
        let result = subscribe(&mut subscriber, callbacks::callback, ptr::null_mut());
        if result == SUCCESS {
            (found.cupti.unsubscribe)(subscriber);
        }
        result
    };
    findings.free = Some(match result {
        SUCCESS => Ok(()),
        error => {
            let who = other_tool().unwrap_or("another tool");
            Err(format!("{who}: {}", describe(&found.cupti, error)))
        }
    });
    findings
}

/// The driver's option `NVreg_RestrictProfilingToAdminUsers`.
fn counters() -> Option<bool> {
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").ok()?;
    let line = parameters.lines().find(|line| line.starts_with("RmProfilingAdminOnly"))?;
    Some(line.split(':').nth(1)?.trim() != "0")
}
