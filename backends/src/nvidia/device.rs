//! The devices: what they are, for the inventory and for estimates.

use std::ffi::{CStr, c_char, c_int};

use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::sys::{Cuda, attribute};

/// What occupancy follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    pub(crate) warp: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    pub(crate) registers: u32,
    pub(crate) registers_per_block: u32,
    pub(crate) shared: u32,
    pub(crate) shared_per_block: u32,
    pub(crate) shared_per_block_optin: u32,
    pub(crate) shared_reserved: u32,
}

/// Puts the devices into the inventory and returns what is known of them, by index. Must
/// not be called while the driver initialises.
pub(crate) fn inventory(cuda: &Cuda, recorder: &dyn ColdRecorder) -> Vec<Limits> {
    let mut count = 0;
    // SAFETY: stores a number.
    if unsafe { (cuda.device_count)(&mut count) } != 0 {
        return Vec::new();
    }
    (0..count.clamp(0, 1024)).map(|ordinal| describe(cuda, recorder, ordinal)).collect()
}

fn describe(cuda: &Cuda, recorder: &dyn ColdRecorder, ordinal: c_int) -> Limits {
    let mut device = 0;
    // SAFETY: stores a number.
    if unsafe { (cuda.device)(&mut device, ordinal) } != 0 {
        return Limits::default();
    }
    let number = |which| {
        let mut value = 0;
        // SAFETY: stores a number.
        let result = unsafe { (cuda.device_attribute)(&mut value, which, device) };
        if result == 0 { value.max(0) as u32 } else { 0 }
    };
    let limits = Limits {
        capability: (
            number(attribute::COMPUTE_CAPABILITY_MAJOR),
            number(attribute::COMPUTE_CAPABILITY_MINOR),
        ),
        multiprocessors: number(attribute::MULTIPROCESSOR_COUNT),
        warp: number(attribute::WARP_SIZE),
        threads_per_block: number(attribute::MAX_THREADS_PER_BLOCK),
        threads: number(attribute::MAX_THREADS_PER_MULTIPROCESSOR),
        blocks: number(attribute::MAX_BLOCKS_PER_MULTIPROCESSOR),
        registers: number(attribute::MAX_REGISTERS_PER_MULTIPROCESSOR),
        registers_per_block: number(attribute::MAX_REGISTERS_PER_BLOCK),
        shared: number(attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        shared_per_block: number(attribute::MAX_SHARED_MEMORY_PER_BLOCK),
        shared_per_block_optin: number(attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        shared_reserved: number(attribute::RESERVED_SHARED_MEMORY_PER_BLOCK),
    };
    let (major, minor) = limits.capability;
    let key = |name: &str| recorder.intern_or_wait(StrId::NONE, name.as_bytes());
    let text =
        |name: &str, value: &str| Extra::new(key(name), ArgType::Str, u64::from(key(value).0));
    let count = |name: &str, value: u64| Extra::new(key(name), ArgType::U64, value);
    let mut facts = vec![
        text("vendor", "NVIDIA"),
        text("architecture", architecture(major, minor)),
        text("compute_capability", &format!("{major}.{minor}")),
        count("multiprocessors", limits.multiprocessors.into()),
        count("max_threads_per_multiprocessor", limits.threads.into()),
        count("registers_per_multiprocessor", limits.registers.into()),
        count("shared_memory_per_multiprocessor", limits.shared.into()),
    ];
    let pci = string(|to, len| {
        cuda.device_pci.map(|f| {
            // SAFETY: writes a C string of at most `len` bytes.
            unsafe { f(to, len, device) }
        })
    });
    facts.extend(pci.map(|pci| text("pci", &pci)));
    facts.extend(uuid(cuda, device).map(|uuid| text("uuid", &uuid)));
    let mut bytes = 0_usize;
    // SAFETY: stores a number.
    if cuda.device_memory.is_some_and(|f| unsafe { f(&mut bytes, device) } == 0) {
        facts.push(count("memory_bytes", bytes as u64));
    }
    let name = string(|to, len| {
        // SAFETY: writes a C string of at most `len` bytes.
        Some(unsafe { (cuda.device_name)(to, len, device) })
    });
    let head = Record {
        other: ordinal as u64,
        site: key(name.as_deref().unwrap_or("NVIDIA GPU")),
        kind: Kind::Gpu as u8,
        ..Record::default()
    };
    recorder.push(head, &facts);
    limits
}

fn string(get: impl FnOnce(*mut c_char, c_int) -> Option<c_int>) -> Option<String> {
    let mut text = [0_u8; 256];
    if get(text.as_mut_ptr().cast(), text.len() as c_int - 1)? != 0 {
        return None;
    }
    Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned())
}

/// The UUID of the device with this number.
pub(crate) fn uuid_of(cuda: &Cuda, ordinal: u32) -> Option<String> {
    let mut device = 0;
    // SAFETY: stores a number.
    let found = unsafe { (cuda.device)(&mut device, ordinal as c_int) } == 0;
    found.then(|| uuid(cuda, device)).flatten()
}

/// As nvidia-smi writes it.
fn uuid(cuda: &Cuda, device: c_int) -> Option<String> {
    let get = cuda.device_uuid.or(cuda.device_uuid_v1)?;
    let mut bytes = [0; 16];
    // SAFETY: stores 16 bytes (`CUuuid`).
    if unsafe { get(&mut bytes, device) } != 0 {
        return None;
    }
    let mut text = String::from("GPU");
    for (at, byte) in bytes.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    Some(text)
}

/// The name of an architecture by compute capability (CUDA Programming Guide).
fn architecture(major: u32, minor: u32) -> &'static str {
    match (major, minor) {
        (5, _) => "Maxwell",
        (6, _) => "Pascal",
        (7, 0..=2) => "Volta",
        (7, _) => "Turing",
        (8, 9) => "Ada",
        (8, _) => "Ampere",
        (9, _) => "Hopper",
        (10.., _) => "Blackwell",
        _ => "unknown",
    }
}
