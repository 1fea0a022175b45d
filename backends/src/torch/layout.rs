//! What is read of PyTorch's structs, as bytes from their beginning.
//!
//! ```text
//! RecordFunction                                   RecordFunctionCallback
//!    0 vtable                                         0 start
//!    8 step_callbacks_: callbacks_ (a SmallVector      8 end
//!      with room for four at 24)                     16 sampling_prob_
//!   88   thread_id_                                  24 scopes_[10]
//!   96   scope_                                      34 needs_inputs_, needs_outputs_, needs_ids_
//!  104 called_start_callbacks_                       40
//!  112 ctx_ (a SmallVector with room for four)
//!  160 fn_: a std::string, or a pointer to a FunctionSchema, which begins with its name
//!      … which of them, sequence_nr_, inputs_, kwinputs_, outputs_
//!      … fwd_thread_id_, handle_, is_async_
//! ```
//! From `fn_` on versions differ: a `std::string` has 32 bytes in the C++ library's new ABI and
//! 8 in the old one, by which PyTorch's own packages for Linux were built before 2.6; and
//! `kwinputs_` came with 2.2. The rest is the same from 1.13 to 2.15.

/// Where the parts of a `RecordFunction` lie that are the same in all versions.
pub(super) const CALLBACKS: usize = 8;
pub(super) const THREAD: usize = 88;
pub(super) const SCOPE: usize = 96;
pub(super) const NAME: usize = 160;
/// More than a `RecordFunction` has in any version.
pub(super) const MAX_BYTES: usize = 1024;

/// `at::RecordScope`.
pub(super) const BACKWARD: u8 = 1;
pub(super) const USER: u8 = 7;
const SCOPES: usize = 10;

/// Where the other parts lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// The headers that say so, ATen/record_function.h of PyTorch, and the ABI.
    pub(super) read_in: &'static str,
    /// Strings are those of the old ABI.
    pub(super) old_strings: bool,
    /// Which one `fn_` is, in its lowest byte: [`TEXT`], else a schema.
    pub(super) name_kind: usize,
    pub(super) sequence: usize,
    pub(super) inputs: usize,
    pub(super) forward_thread: usize,
    pub(super) handle: usize,
    pub(super) is_async: usize,
}

/// `fn_` is a string.
pub(super) const TEXT: u8 = 0;

/// All that are known, the newest first.
pub(super) const LAYOUTS: [Layout; 4] = [
    layout("2.2 to 2.15", 32, 56),
    layout("2.2 to 2.5, old strings", 8, 56),
    layout("1.13 to 2.1", 32, 0),
    layout("1.13 to 2.1, old strings", 8, 0),
];

/// For strings and `kwinputs_` of these sizes.
const fn layout(read_in: &'static str, string: usize, kwinputs: usize) -> Layout {
    let name_kind = NAME + string;
    let sequence = name_kind + 8;
    // Two words of inputs_, three of outputs_.
    let forward_thread = sequence + 8 + 16 + kwinputs + 24;
    let handle = forward_thread + 8;
    let inputs = sequence + 8;
    let old_strings = string == 8;
    Layout {
        read_in,
        old_strings,
        name_kind,
        sequence,
        inputs,
        forward_thread,
        handle,
        is_async: handle + 8,
    }
}

/// `at::RecordFunctionCallback`. It is passed by value, on the stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Callback {
    pub(super) start: Start,
    pub(super) end: End,
    pub(super) probability: f64,
    pub(super) scopes: [bool; SCOPES],
    pub(super) needs_inputs: bool,
    pub(super) needs_outputs: bool,
    pub(super) needs_ids: bool,
}

/// Returns a `std::unique_ptr`, which the caller has room for at `context`: as the C++ ABI says.
pub(super) type Start =
    unsafe extern "C" fn(context: *mut *mut u8, function: *const u8) -> *mut *mut u8;
pub(super) type End = unsafe extern "C" fn(function: *const u8, context: *mut u8);

impl Callback {
    /// Called for everything.
    pub(super) const fn new(start: Start, end: End) -> Callback {
        Callback {
            start,
            end,
            probability: 1.0,
            scopes: [true; SCOPES],
            needs_inputs: false,
            needs_outputs: false,
            needs_ids: false,
        }
    }
}

const _: () = assert!(size_of::<Callback>() == 40);
const _: () = assert!(std::mem::offset_of!(Callback, needs_inputs) == 34);
// What `isAsync` and `name` of Debian's 1.13 and of PyPI's 2.11 read.
const _: () = assert!(LAYOUTS[2].name_kind == 0xc0 && LAYOUTS[2].is_async == 0x108);
const _: () = assert!(LAYOUTS[0].handle == 312 && LAYOUTS[0].is_async == 320);

/// The value at an offset.
///
/// # Safety
/// There is a value of this type.
#[inline(always)]
pub(super) unsafe fn read<T: Copy>(base: *const u8, at: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { base.add(at).cast::<T>().read_unaligned() }
}
