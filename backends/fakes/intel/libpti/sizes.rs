//! How many bytes a record has, by kind and version: what `ptiViewGetNextRecord` steps. From
//! `pti_view.h` of the versions named; a real library is asked in
//! `tests/real_pti_walks_our_records.rs`.

/// `pti_view_kind`.
pub(crate) mod kind {
    pub(crate) const KERNEL: u32 = 1;
    pub(crate) const DRIVER_API: u32 = 3;
    pub(crate) const OVERHEAD: u32 = 5;
    pub(crate) const RUNTIME_API: u32 = 6;
    pub(crate) const COPY: u32 = 8;
    pub(crate) const FILL: u32 = 9;
    pub(crate) const PEER_COPY: u32 = 10;
    pub(crate) const SYNCHRONIZATION: u32 = 11;
    pub(crate) const COMMUNICATION: u32 = 12;
}

/// Kind; its size before 1.0 and from then on, 0 where it is not known.
pub(crate) const SIZES: &[(u32, usize, usize)] = &[
    (kind::KERNEL, 168, 184),
    (kind::DRIVER_API, 48, 48),
    (kind::OVERHEAD, 56, 56),
    (kind::RUNTIME_API, 48, 48),
    (7, 24, 24), // EXTERNAL_CORRELATION
    (kind::COPY, 136, 152),
    (kind::FILL, 136, 152),
    (kind::PEER_COPY, 168, 192),
    (kind::SYNCHRONIZATION, 72, 72),
    (kind::COMMUNICATION, 56, 64),
];

/// The size of a kind's records in a version, if it has the kind.
pub(crate) fn size_of(kind: u32, version: (u32, u32)) -> Option<usize> {
    let (_, old, new) = SIZES.iter().find(|(of, ..)| *of == kind)?;
    match kind {
        kind::SYNCHRONIZATION if version < (0, 12) => None,
        kind::COMMUNICATION if version < (0, 17) => None,
        _ => Some(if version >= (1, 0) { *new } else { *old }),
    }
}
