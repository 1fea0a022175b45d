//! What a thread says of the collective that it begins: a `torch::ParamCommsDebugInfo` of 2.12 to
//! 2.15.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::ptr;

/// `std::string`.
#[repr(C)]
struct Text {
    text: *const c_char,
    length: usize,
    room: [u64; 2],
}

/// `std::vector<int64_t>`.
#[repr(C)]
struct Numbers {
    first: *const i64,
    end: *const i64,
    room: *const i64,
}

#[repr(C)]
struct ParamComms {
    vtable: usize,
    description: Text,
    group: Text,
    rank: i32,
    size: i32,
    name: Text,
    elements: [i64; 2],
    dtype: u8,
    splits: [Numbers; 2],
    start: i32,
    stride: i32,
    ranks: Numbers,
    asynchronous: bool,
    sequence: i64,
    p2p: bool,
}

thread_local!(static SAID: Cell<*const ParamComms> = const { Cell::new(ptr::null()) });

/// `c10::ThreadLocalDebugInfo::get`.
#[unsafe(export_name = "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE")]
pub extern "C" fn get(kind: u8) -> *const u8 {
    if kind == 4 { SAID.get().cast() } else { ptr::null() }
}

/// `torch::ParamCommsDebugInfo::ParamCommsDebugInfo`, which says how it is laid out.
#[unsafe(export_name = "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iiib")]
pub extern "C" fn construct() {}

/// Says, of this thread's collectives from now on: of `size` ranks, `elements` floats each.
///
/// # Safety
/// `name` is a C string that stays, or null: it says nothing any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_torch_says(name: *const c_char, rank: i32, size: i32, elements: i64) {
    if name.is_null() {
        return SAID.set(ptr::null());
    }
    let text = |text: *const c_char| Text {
        text,
        // SAFETY: the caller's promise, and literals.
        length: unsafe { CStr::from_ptr(text) }.count_bytes(),
        room: [0; 2],
    };
    let numbers = |numbers: Vec<i64>| {
        let range = numbers.leak().as_ptr_range();
        Numbers { first: range.start, end: range.end, room: range.end }
    };
    SAID.set(Box::leak(Box::new(ParamComms {
        vtable: 0,
        description: text(c"default_pg".as_ptr()),
        group: text(c"0".as_ptr()),
        rank,
        size,
        name: text(name),
        elements: [elements; 2],
        dtype: 6,
        splits: [numbers(Vec::new()), numbers(vec![1, 2])],
        start: 0,
        stride: 1,
        ranks: numbers((0..size.into()).collect()),
        asynchronous: true,
        sequence: 42,
        p2p: false,
    })));
}
