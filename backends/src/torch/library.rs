//! The `libtorch_cpu.so` of the process, and what is called of it. C++ functions, by the names
//! that its ABI gives them.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;

use super::layout::Callback;
use crate::load::{Library, functions};

functions! {
    /// Functions that all versions have.
    Torch
    required {
        add_callback = c"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE":
            fn(Callback) -> u64;
        remove_callback = c"_ZN2at14removeCallbackEm": fn(u64) -> ();
        construct = c"_ZN2at14RecordFunctionC1ENS_11RecordScopeE": fn(*mut u8, u8) -> ();
        destruct = c"_ZN2at14RecordFunctionD1Ev": fn(*mut u8) -> ();
        set_async = c"_ZN2at14RecordFunction9_setAsyncEv": fn(*mut u8) -> ();
        name = c"_ZNK2at14RecordFunction4nameEv": fn(*const u8) -> *const c_char;
        thread = c"_ZN2at14RecordFunction15currentThreadIdEv": fn() -> u64;
        is_enabled = c"_ZN2at23isRecordFunctionEnabledEv": fn() -> bool;
    }
    optional {}
}

type ByText = unsafe extern "C" fn(*mut u8, *const c_char, i64);
type ByVariant = unsafe extern "C" fn(*mut u8, Variant, i64);

/// `RecordFunction::before` with a name and a sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    /// A C string.
    Text(ByText),
    /// A `variant` of a `string_view`, which has its words in this order.
    Variant(ByVariant, Order),
}

/// The words of a `string_view`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// As in `std::string_view` of libstdc++.
    LengthFirst,
    /// As in `c10::string_view`.
    TextFirst,
}

/// A `variant` whose first alternative is a `string_view`. Trivial to copy, and larger than two
/// words: passed by value, on the stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Variant {
    pub(super) words: [usize; 2],
    pub(super) index: usize,
}

impl Before {
    pub(super) fn find(library: Library) -> Option<Before> {
        const TEXT: &CStr = c"_ZN2at14RecordFunction6beforeEPKcl";
        const VARIANTS: [(&CStr, Order); 3] = [
            (
                c"_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl",
                Order::LengthFirst,
            ),
            (
                c"_ZN2at14RecordFunction6beforeESt7variantIJN3c1017basic_string_viewIcEESt17reference_wrapperIKNS2_14FunctionSchemaEEEEl",
                Order::TextFirst,
            ),
            (
                c"_ZN2at14RecordFunction6beforeEN3c107variantIJNS1_17basic_string_viewIcEESt17reference_wrapperIKNS1_14FunctionSchemaEEEEEl",
                Order::TextFirst,
            ),
        ];
        if let Some(found) = library.symbol(TEXT) {
            // SAFETY: the function of this name has this type.
            let found = unsafe { transmute::<*mut c_void, ByText>(found.as_ptr()) };
            return Some(Before::Text(found));
        }
        VARIANTS.iter().find_map(|(name, order)| {
            let found = library.symbol(name)?;
            // SAFETY: as above.
            let found = unsafe { transmute::<*mut c_void, ByVariant>(found.as_ptr()) };
            Some(Before::Variant(found, *order))
        })
    }

    /// Begins an operator.
    ///
    /// # Safety
    /// `function` is a `RecordFunction` that has not begun.
    pub(super) unsafe fn call(self, function: *mut u8, name: &'static CStr, sequence: i64) {
        let text = name.as_ptr();
        // SAFETY: the caller's promise, and a text that stays.
        unsafe {
            match self {
                Before::Text(before) => before(function, text, sequence),
                Before::Variant(before, order) => {
                    let (text, length) = (text.addr(), name.count_bytes());
                    let words = match order {
                        Order::LengthFirst => [length, text],
                        Order::TextFirst => [text, length],
                    };
                    before(function, Variant { words, index: 0 }, sequence);
                }
            }
        }
    }
}

/// The library of the process, if it has one.
pub(super) fn find() -> Option<Library> {
    Library::present_in_any_version(c"libtorch_cpu.so")
}
