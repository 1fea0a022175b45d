//! What the environment asks of the fakes for Intel.
// Each fake uses some of it.
#![allow(dead_code)]

use std::sync::OnceLock;

/// `FAKE_PTI_VERSION`, as (major, minor). 1.2 if unset.
pub(crate) fn version() -> (u32, u32) {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let text = std::env::var("FAKE_PTI_VERSION").unwrap_or_else(|_| "1.2".into());
        let (major, minor) = text.split_once('.').expect("FAKE_PTI_VERSION: major.minor");
        let number = |text: &str| text.parse::<u32>().expect("FAKE_PTI_VERSION: a number");
        (number(major), number(minor))
    })
}

/// Whether `FAKE_PTI_FAULT` names this fault.
pub(crate) fn fault(name: &str) -> bool {
    faults().iter().any(|(fault, _)| fault == name)
}

/// The number after the fault's name (`drop:10`): `default` without one, 0 without the fault.
pub(crate) fn fault_every(name: &str, default: u64) -> u64 {
    let found = faults().iter().find(|(fault, _)| fault == name);
    found.map_or(0, |(_, value)| value.parse().unwrap_or(default))
}

/// What follows the names of these faults: `error:ptiViewEnable=3` gives `ptiViewEnable=3`.
pub(crate) fn fault_values(name: &str) -> impl Iterator<Item = &'static str> {
    faults().iter().filter(move |(fault, _)| fault == name).map(|(_, value)| value.as_str())
}

fn faults() -> &'static [(String, String)] {
    static FAULTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let text = std::env::var("FAKE_PTI_FAULT").unwrap_or_default();
        let pair = |word: &str| {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        };
        text.split(',').filter(|word| !word.is_empty()).map(pair).collect()
    })
}
