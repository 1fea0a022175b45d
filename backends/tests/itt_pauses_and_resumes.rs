//! Pausing is for the whole process, so it is tested in one of its own.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use kymograph_backends::annotate::itt;

mod lines;

static LINES: lines::Lines = lines::Lines::new(None);

#[repr(C)]
struct Info(*const c_char, *mut *const c_void, usize, usize, c_int);

fn function(name: &str) -> unsafe extern "C" fn() {
    let name = CString::new(format!("__itt_{name}")).unwrap();
    let mut slot = ptr::null();
    let mut list =
        [Info(name.as_ptr(), &mut slot, 0, 0, 0), Info(ptr::null(), ptr::null_mut(), 0, 0, 0)];
    let mut global = [0_usize; 25];
    global[15] = list.as_mut_ptr().expose_provenance();
    // SAFETY: laid out as ITT's static part does; the functions take no arguments, or
    // ignore what is in their place.
    unsafe {
        itt::initialize(global.as_mut_ptr().cast(), 0, &LINES);
        std::mem::transmute::<*const c_void, unsafe extern "C" fn()>(slot)
    }
}

#[test]
fn nothing_is_recorded_between_pause_and_resume() {
    let call = |name: &str| {
        let function = function(name);
        // SAFETY: of this type.
        unsafe { function() }
    };
    let mark = |name: &str| {
        let text = CString::new(name).unwrap();
        // SAFETY: of these types in ittnotify.h.
        unsafe {
            let create: unsafe extern "C" fn(*const c_char) -> *mut c_void =
                std::mem::transmute(function("string_handle_create"));
            let marker: unsafe extern "C" fn(usize, Id, *mut c_void, c_int) =
                std::mem::transmute(function("marker"));
            marker(0, Id(0, 0, 0), create(text.as_ptr()), 0);
        }
    };
    mark("before");
    call("pause");
    call("pause");
    mark("during");
    call("resume");
    call("resume");
    mark("after");
    call("detach");
    call("resume");
    mark("detached");
    assert_eq!(
        lines::take(),
        [
            "instant itt \"before\"",
            "instant itt \"annotations paused\"",
            "instant itt \"annotations resumed\"",
            "instant itt \"after\"",
            "instant itt \"annotations detached\"",
        ]
    );
}

#[repr(C)]
struct Id(u64, u64, u64);
