//! ITT's binary interface, from the public sources of Intel's ITT API 3
//! (`include/ittnotify.h`, `src/ittnotify/ittnotify_config.h`).
//!
//! Domains, string handles and counters are structures that the tool and the program
//! share. Their `extra` fields are the tool's: we keep interned ids there, as atomics,
//! because any thread may fill them in.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};
use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64};

/// A function of any type, as the list of functions holds it.
pub(crate) type Function = *const ();

/// `__itt_global`: the descriptor of one static part (there is one in each shared object).
#[repr(C)]
#[derive(Debug)]
pub struct IttGlobal {
    pub(crate) magic: [u8; 8],
    pub(crate) version_major: c_ulong,
    pub(crate) version_minor: c_ulong,
    pub(crate) version_build: c_ulong,
    pub(crate) api_initialized: c_long,
    pub(crate) mutex_initialized: c_long,
    pub(crate) atomic_counter: c_long,
    /// A `pthread_mutex_t`.
    pub(crate) mutex: [u64; 5],
    pub(crate) lib: *mut c_void,
    pub(crate) error_handler: *mut c_void,
    pub(crate) dll_path: *mut c_void,
    pub(crate) api_list: *mut ApiInfo,
    pub(crate) next: *mut IttGlobal,
    pub(crate) thread_list: *mut c_void,
    pub(crate) domain_list: *mut Domain,
    pub(crate) string_list: *mut StringHandle,
    pub(crate) state: c_int,
    /// Only in static parts since [`COUNTER_LIST_BUILD`].
    pub(crate) counter_list: *mut Counter,
}

/// `version_build` of the first static part with a list of counters.
pub(crate) const COUNTER_LIST_BUILD: c_ulong = 20_151_119;

/// `__itt_api_info`: one function of the static part.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ApiInfo {
    pub(crate) name: *const c_char,
    /// Where the program looks for it.
    pub(crate) function: *mut Function,
    pub(crate) init: Function,
    /// What to put there if the tool has none.
    pub(crate) null: Function,
    pub(crate) group: c_int,
}

/// `__itt_domain`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Domain {
    /// 0: the program switched it off.
    pub(crate) flags: AtomicI32,
    pub(crate) name: *const c_char,
    pub(crate) wide_name: *mut c_void,
    /// Ours: the category's id.
    pub(crate) extra1: AtomicI32,
    pub(crate) extra2: AtomicPtr<c_void>,
    pub(crate) next: *mut Domain,
}

/// `__itt_string_handle`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct StringHandle {
    pub(crate) text: *const c_char,
    pub(crate) wide_text: *mut c_void,
    pub(crate) extra1: AtomicI32,
    /// Ours: a category's id in the upper half, in the lower the text's in it.
    pub(crate) extra2: AtomicU64,
    pub(crate) next: *mut StringHandle,
}

/// `__itt_counter_info_t`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) name: *const c_char,
    pub(crate) wide_name: *mut c_void,
    pub(crate) domain: *const c_char,
    pub(crate) wide_domain: *mut c_void,
    /// [`Metadata`] type of its values.
    pub(crate) ty: c_int,
    pub(crate) index: c_long,
    /// Ours: the name's id in the domain's category.
    pub(crate) extra1: AtomicI32,
    /// Ours: its value so far.
    pub(crate) extra2: AtomicU64,
    pub(crate) next: *mut Counter,
}

/// `__itt_id`, passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Id {
    pub(crate) d1: u64,
    pub(crate) d2: u64,
    pub(crate) d3: u64,
}

impl Id {
    /// `__itt_null`.
    pub(crate) fn is_null(self) -> bool {
        self == Id::default()
    }
}

/// `__itt_metadata_type`.
pub(crate) const METADATA_U64: c_int = 1;
pub(crate) const METADATA_I64: c_int = 2;
pub(crate) const METADATA_U32: c_int = 3;
pub(crate) const METADATA_I32: c_int = 4;
pub(crate) const METADATA_U16: c_int = 5;
pub(crate) const METADATA_I16: c_int = 6;
pub(crate) const METADATA_F32: c_int = 7;
pub(crate) const METADATA_F64: c_int = 8;

/// `__itt_timestamp_none`.
pub(crate) const TIMESTAMP_NONE: u64 = u64::MAX;

const _: () = assert!(size_of::<IttGlobal>() == 176);
const _: () = assert!(offset_of!(IttGlobal, mutex) == 56);
const _: () = assert!(offset_of!(IttGlobal, lib) == 96);
const _: () = assert!(offset_of!(IttGlobal, api_list) == 120);
const _: () = assert!(offset_of!(IttGlobal, domain_list) == 144);
const _: () = assert!(offset_of!(IttGlobal, string_list) == 152);
const _: () = assert!(offset_of!(IttGlobal, counter_list) == 168);
const _: () = assert!(size_of::<ApiInfo>() == 40);
const _: () = assert!(size_of::<Domain>() == 48);
const _: () = assert!(offset_of!(Domain, extra1) == 24);
const _: () = assert!(size_of::<StringHandle>() == 40);
const _: () = assert!(offset_of!(StringHandle, extra2) == 24);
const _: () = assert!(size_of::<Counter>() == 72);
const _: () = assert!(offset_of!(Counter, extra1) == 48);
const _: () = assert!(size_of::<Id>() == 24);
