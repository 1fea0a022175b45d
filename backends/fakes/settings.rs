//! What the environment asks of the fakes.
// Each fake uses some of it.
#![allow(dead_code)]

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::VARIABLES;

/// In nanoseconds.
pub(crate) const HOUR: u64 = 3_600_000_000_000;

/// Where it is asked.
pub(crate) struct Variables {
    /// Faults, separated by commas.
    pub(crate) faults: &'static str,
    pub(crate) version: &'static str,
    /// The version if none is asked for.
    pub(crate) unset: &'static str,
}

impl Variables {
    pub(crate) const CUPTI: Variables =
        Variables { faults: "FAKE_CUPTI_FAULT", version: "FAKE_CUPTI_VERSION", unset: "12.6" };
    pub(crate) const ROCPROFILER: Variables = Variables {
        faults: "FAKE_ROCPROFILER_FAULT",
        version: "FAKE_ROCPROFILER_VERSION",
        unset: "12.6",
    };
    pub(crate) const PTI: Variables =
        Variables { faults: "FAKE_PTI_FAULT", version: "FAKE_PTI_VERSION", unset: "1.2" };
    pub(crate) const HPU: Variables =
        Variables { faults: "FAKE_HPU_FAULT", version: "FAKE_HPU_VERSION", unset: "new" };
}

/// The version, as it was written.
fn asked() -> String {
    std::env::var(VARIABLES.version).unwrap_or_else(|_| VARIABLES.unset.into())
}

/// Whether the version is called `old`: not all have numbers.
pub(crate) fn is_old() -> bool {
    static OLD: OnceLock<bool> = OnceLock::new();
    *OLD.get_or_init(|| asked() == "old")
}

/// The version, as (major, minor).
pub(crate) fn version() -> (u32, u32) {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let text = asked();
        let (major, minor) = text.split_once('.').expect("the version: major.minor");
        let number = |text: &str| text.parse::<u32>().expect("the version: a number");
        (number(major), number(minor))
    })
}

/// The version, as major * 100 + minor: 1208 for "12.8".
pub(crate) fn toolkit() -> u32 {
    let (major, minor) = version();
    major * 100 + minor
}

/// Whether the environment asks for this fault.
pub(crate) fn fault(name: &str) -> bool {
    faults().iter().any(|(fault, _)| fault == name)
}

/// The text after the fault's name (`replay:FILE`), if the environment asks for it.
pub(crate) fn fault_text(name: &str) -> Option<&'static str> {
    let found = faults().iter().find(|(fault, _)| fault == name);
    found.map(|(_, value)| value.as_str())
}

/// The number after the fault's name (`drop:10`): `default` without one, 0 without the fault.
pub(crate) fn fault_every(name: &str, default: u64) -> u64 {
    let found = faults().iter().find(|(fault, _)| fault == name);
    found.map_or(0, |(_, value)| value.parse().unwrap_or(default))
}

/// Whether the fault befalls the one of this number: every tenth, or as often as it says.
pub(crate) fn befalls(name: &str, number: u64) -> bool {
    let every = fault_every(name, 10);
    every > 0 && number.is_multiple_of(every)
}

/// What this function shall answer instead of doing anything: `error:cuptiSubscribe=39`.
pub(crate) fn error(function: &str) -> Option<c_int> {
    let answers = faults().iter().filter(|(fault, _)| fault == "error");
    let mut answers = answers.filter_map(|(_, value)| value.split_once('='));
    let (_, answer) = answers.find(|(name, _)| *name == function)?;
    Some(answer.parse().expect("error:FUNCTION=NUMBER"))
}

fn faults() -> &'static [(String, String)] {
    static FAULTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let text = std::env::var(VARIABLES.faults).unwrap_or_default();
        let pair = |word: &str| {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        };
        text.split(',').filter(|word| !word.is_empty()).map(pair).collect()
    })
}
