//! Numbers for what has none in a file.

/// A number that others hardly get, and never 0.
pub(crate) fn mix(parts: &[u64]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for part in parts {
        hash = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash.max(1)
}
