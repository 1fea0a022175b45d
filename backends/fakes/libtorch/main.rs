//! A `libtorch_cpu.so` for tests: operators that a test begins and ends, laid out as those of
//! PyTorch 2.2 to 2.15, and observers that are called for them.
//!
//! `FAKE_TORCH` names what is wrong with it: `layout` (an operator has its number elsewhere),
//! `deaf` (no observer is called), `disabled` (observers are switched off on all threads).

mod collective;

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// `at::RecordFunctionCallback`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Callback {
    start: unsafe extern "C" fn(*mut *mut u8, *const u8) -> *mut *mut u8,
    end: unsafe extern "C" fn(*const u8, *mut u8),
    probability: f64,
    scopes: [bool; 10],
    needs_inputs: bool,
    needs_outputs: bool,
    needs_ids: bool,
}

/// `std::variant<std::string_view, …>`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Variant {
    length: usize,
    text: *const c_char,
    index: usize,
}

static CALLBACKS: Mutex<Vec<(u64, Callback)>> = Mutex::new(Vec::new());
static HANDLES: AtomicU64 = AtomicU64::new(1);

fn fault(name: &str) -> bool {
    std::env::var("FAKE_TORCH").is_ok_and(|fault| fault == name)
}

fn callbacks() -> Vec<(u64, Callback)> {
    if fault("deaf") {
        Vec::new()
    } else {
        CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn put<T>(object: *mut u8, at: usize, value: T) {
    // SAFETY: an object of this library, or of who looks at its layout, has 344 bytes.
    unsafe { object.add(at).cast::<T>().write_unaligned(value) };
}

fn get<T: Copy>(object: *const u8, at: usize) -> T {
    // SAFETY: as above.
    unsafe { object.add(at).cast::<T>().read_unaligned() }
}

/// `at::addGlobalCallback`.
///
/// # Panics
/// If another thread has panicked in one of these.
#[unsafe(export_name = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE")]
pub extern "C" fn add_callback(callback: Callback) -> u64 {
    let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).push((handle, callback));
    handle
}

/// `at::removeCallback`.
///
/// # Panics
/// If another thread has panicked in one of these.
#[unsafe(export_name = "_ZN2at14removeCallbackEm")]
pub extern "C" fn remove_callback(handle: u64) {
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != handle);
}

/// `at::RecordFunction::RecordFunction(RecordScope)`.
///
/// # Safety
/// `object` is one, or room for one.
#[unsafe(export_name = "_ZN2at14RecordFunctionC1ENS_11RecordScopeE")]
pub unsafe extern "C" fn construct(object: *mut u8, scope: u8) {
    let all = callbacks();
    put(object, 8, object.wrapping_add(24));
    put(object, 16, all.len() as u32);
    for (index, (_, callback)) in all.iter().take(4).enumerate() {
        put(object, 24 + 16 * index, (callback.start, callback.end));
    }
    put(object, 88, thread());
    put(object, 96, scope);
    put(object, 200, -1_i64);
    put(object, 304, 0_u64);
    put(object, 320, 0_u8);
}

/// `at::RecordFunction::~RecordFunction`.
///
/// # Safety
/// `object` is one, or room for one.
#[unsafe(export_name = "_ZN2at14RecordFunctionD1Ev")]
pub unsafe extern "C" fn destruct(object: *mut u8) {
    for index in 0..get::<u32>(object, 16).min(4) as usize {
        let end: unsafe extern "C" fn(*const u8, *mut u8) = get(object, 24 + 16 * index + 8);
        // SAFETY: as PyTorch calls it.
        unsafe { end(object, std::ptr::null_mut()) };
    }
}

/// `at::RecordFunction::before`.
///
/// # Safety
/// `object` is one, or room for one.
#[unsafe(export_name = "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl")]
pub unsafe extern "C" fn before(object: *mut u8, name: Variant, sequence: i64) {
    if name.index != 0 {
        return;
    }
    put(object, 160, name.text);
    put(object, 168, name.length);
    put(object, 192, 0_u8);
    begin(object, sequence);
}

fn begin(object: *mut u8, sequence: i64) {
    put(object, if fault("layout") { 176 } else { 200 }, sequence);
    put(object, 312, HANDLES.fetch_add(1, Ordering::Relaxed));
    for index in 0..get::<u32>(object, 16).min(4) as usize {
        let start: unsafe extern "C" fn(*mut *mut u8, *const u8) -> *mut *mut u8 =
            get(object, 24 + 16 * index);
        let mut context = std::ptr::dangling_mut();
        // SAFETY: as PyTorch calls it.
        unsafe { start(&raw mut context, object) };
        assert!(context.is_null(), "it has no context");
    }
}

/// `at::RecordFunction::_setAsync`.
///
/// # Safety
/// `object` is one, or room for one.
#[unsafe(export_name = "_ZN2at14RecordFunction9_setAsyncEv")]
pub unsafe extern "C" fn set_async(object: *mut u8) {
    put(object, 320, 1_u8);
}

/// `at::RecordFunction::name`.
///
/// # Safety
/// `object` is one, or room for one.
#[unsafe(export_name = "_ZNK2at14RecordFunction4nameEv")]
pub unsafe extern "C" fn name(object: *const u8) -> *const c_char {
    get(object, 160)
}

/// `at::RecordFunction::currentThreadId`.
#[unsafe(export_name = "_ZN2at14RecordFunction15currentThreadIdEv")]
pub extern "C" fn thread() -> u64 {
    thread_local!(static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(1);
        THREADS.fetch_add(1, Ordering::Relaxed)
    });
    THREAD.with(|thread| *thread)
}

/// `at::isRecordFunctionEnabled`.
#[unsafe(export_name = "_ZN2at23isRecordFunctionEnabledEv")]
pub extern "C" fn is_enabled() -> bool {
    !fault("disabled")
}

/// Begins an operator of a scope; `forward` is the thread that created a node. Returns it, for
/// [`fake_torch_end`].
///
/// # Safety
/// `name` is a C string that stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_torch_begin(
    scope: u8,
    name: *const c_char,
    sequence: i64,
    forward: u64,
) -> *mut u8 {
    // What an operator without a text points to begins with its name, a std::string.
    // SAFETY: the caller's promise.
    let length = unsafe { CStr::from_ptr(name) }.count_bytes();
    let schema = Box::into_raw(Box::new([name.expose_provenance(), length]));
    let object: *mut u8 = Box::into_raw(Box::new([0_u64; 43])).cast();
    // SAFETY: room for one.
    unsafe { construct(object, scope) };
    put(object, 304, forward);
    // SAFETY: the caller's promise.
    if unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(b"aten::") {
        put(object, 160, schema);
        put(object, 192, 1_u8);
    } else {
        put(object, 160, name);
        put(object, 192, 0_u8);
    }
    begin(object, sequence);
    object
}

/// Ends it.
///
/// # Safety
/// It was begun, and not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_torch_end(object: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { destruct(object) };
    // SAFETY: it came from a box like this.
    drop(unsafe { Box::from_raw(object.cast::<[u64; 43]>()) });
}
