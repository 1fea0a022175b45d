//! What the environment asks of the fake for Gaudi.

use std::sync::OnceLock;

/// Whether `FAKE_HPU_VERSION` is `old`.
pub(crate) fn is_old() -> bool {
    std::env::var("FAKE_HPU_VERSION").is_ok_and(|version| version == "old")
}

/// Whether `FAKE_HPU_FAULT` names this fault.
pub(crate) fn fault(name: &str) -> bool {
    faults().iter().any(|(fault, _)| fault == name)
}

/// The number after the fault's name (`drop:10`): `default` without one, 0 without the fault.
pub(crate) fn fault_every(name: &str, default: u64) -> u64 {
    let found = faults().iter().find(|(fault, _)| fault == name);
    found.map_or(0, |(_, value)| value.parse().unwrap_or(default))
}

/// What follows the names of these faults: `error:synProfilerStart=3` gives `synProfilerStart=3`.
pub(crate) fn fault_values(name: &str) -> impl Iterator<Item = &'static str> {
    faults().iter().filter(move |(fault, _)| fault == name).map(|(_, value)| value.as_str())
}

fn faults() -> &'static [(String, String)] {
    static FAULTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    FAULTS.get_or_init(|| {
        let text = std::env::var("FAKE_HPU_FAULT").unwrap_or_default();
        let pair = |word: &str| {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        };
        text.split(',').filter(|word| !word.is_empty()).map(pair).collect()
    })
}
