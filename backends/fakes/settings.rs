//! What the environment asks of the fakes.
// Each fake uses some of it.
#![allow(dead_code)]

use std::sync::OnceLock;

use crate::{FAULT_VARIABLE, VERSION_VARIABLE};

/// The version, as major * 100 + minor: 1208 for "12.8". 12.6 if unset.
pub(crate) fn toolkit() -> u32 {
    static TOOLKIT: OnceLock<u32> = OnceLock::new();
    *TOOLKIT.get_or_init(|| {
        let text = std::env::var(VERSION_VARIABLE).unwrap_or_else(|_| "12.6".into());
        let (major, minor) = text.split_once('.').expect("the version: major.minor");
        let number = |text: &str| text.parse::<u32>().expect("the version: a number");
        number(major) * 100 + number(minor)
    })
}

/// Whether the environment asks for this fault.
pub(crate) fn fault(name: &str) -> bool {
    faults().iter().any(|(fault, _)| fault == name)
}

/// The number after the fault's name (`drop:10`): `default` without one, 0 without the fault.
pub(crate) fn fault_every(name: &str, default: u64) -> u64 {
    let found = faults().iter().find(|(fault, _)| fault == name);
    found.map_or(0, |(_, value)| value.parse().unwrap_or(default))
}

/// What follows the names of these faults: `error:cuptiSubscribe=39` gives
/// `cuptiSubscribe=39`.
pub(crate) fn fault_values(name: &str) -> impl Iterator<Item = &'static str> {
    faults().iter().filter(move |(fault, _)| fault == name).map(|(_, value)| value.as_str())
}

fn faults() -> &'static [(String, String)] {
    static FAULTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let text = std::env::var(FAULT_VARIABLE).unwrap_or_default();
        let pair = |word: &str| {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        };
        text.split(',').filter(|word| !word.is_empty()).map(pair).collect()
    })
}
