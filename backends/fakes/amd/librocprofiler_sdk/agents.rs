//! `rocprofiler_agent_v0_t` (agent.h): a processor with two nodes, and GPUs.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::settings::{self, toolkit};
use crate::status::{ERROR, SUCCESS, call};

/// Ids are opaque; these are not the indices.
pub(crate) fn gpu(device: u32) -> u64 {
    0x1000 + u64::from(device)
}
pub(crate) const CPU: u64 = 0x10;

type Each = unsafe extern "C" fn(c_int, *const *const u8, usize, *mut c_void) -> c_int;

/// Whether HIP sees a GPU.
fn visible(number: u32) -> bool {
    let list = std::env::var("HIP_VISIBLE_DEVICES").unwrap_or_default();
    list.is_empty() || list.split(',').any(|word| word.trim() == number.to_string())
}

struct Agents(Vec<&'static [u8]>);

fn size() -> usize {
    match toolkit() {
        ..6 => 296,
        6..=100 => 304,
        _ => 312,
    }
}

fn agent(
    id: u64,
    kind: u32,
    number: u32,
    name: &'static CStr,
    product: &'static CStr,
) -> &'static [u8] {
    // `heap`, `flags`, `width`, `clock`, `bytes`
    let bank: Vec<u64> = vec![1, 1600 << 32, if kind == 2 { 192 << 30 } else { 512 << 30 }];
    let bank: &'static [u64] = Box::leak(bank.into_boxed_slice());
    // Whole words, so that it is aligned.
    let words: &'static mut [u64] = Box::leak(vec![0_u64; size() / 8].into_boxed_slice());
    // SAFETY: the bytes of the words.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size()) };
    let mut put = |at: usize, value: u64, width: usize| {
        bytes[at..at + width].copy_from_slice(&value.to_ne_bytes()[..width]);
    };
    put(0, size() as u64, 8);
    put(8, id, 8);
    put(16, kind.into(), 4);
    put(28, 1, 4); // memory banks
    put(52, 64, 4); // LDS, KiB
    put(64, if kind == 2 { 64 } else { 0 }, 4); // wavefront
    put(72, if kind == 2 { 304 } else { 0 }, 4); // compute units
    put(100, if kind == 2 { 90_402 } else { 0 }, 4); // gfx942
    put(108, (0x0500 + u64::from(number) * 0x100) & 0xffff, 4); // bus:device.function
    put(224, bank.as_ptr() as u64, 8);
    put(248, name.as_ptr() as u64, 8);
    put(256, c"AMD".as_ptr() as u64, 8);
    put(264, product.as_ptr() as u64, 8);
    put(280, u64::from(number) + if kind == 2 { 2 } else { 0 }, 4);
    put(288, number.into(), 4);
    if size() > 296 {
        // What `HIP_VISIBLE_DEVICES` leaves: bits of HSA, HIP, RCCL, rocDecode.
        put(292, if kind != 2 || visible(number) { 15 } else { 1 }, 4);
        put(296, 0x1234_5678_9abc_def0, 8);
    }
    if size() > 304 {
        put(304, number.into(), 8);
    }
    bytes
}

fn agents() -> &'static Agents {
    static AGENTS: OnceLock<Agents> = OnceLock::new();
    AGENTS.get_or_init(|| {
        let text = std::env::var("FAKE_HIP_DEVICES").unwrap_or_default();
        let gpus = if settings::fault("no-agents") { 0 } else { text.parse().unwrap_or(1) };
        let cpu = |n: u32| agent(CPU + u64::from(n), 1, n, c"AMD EPYC", c"AMD EPYC 9654");
        let gpu = |n: u32| agent(gpu(n), 2, n, c"gfx942", c"Fake Instinct");
        Agents((0..2).map(cpu).chain((0..gpus).map(gpu)).collect())
    })
}

/// # Safety
/// `each` takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_available_agents(
    version: c_int,
    each: Each,
    known: usize,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_query_available_agents", || {
        if version != 1 || known > size() {
            return ERROR;
        }
        let pointers: Vec<_> = agents().0.iter().map(|agent| agent.as_ptr()).collect();
        // SAFETY: the caller's.
        unsafe { each(version, pointers.as_ptr(), pointers.len(), data) };
        SUCCESS
    })
}
