//! The arguments of calls: where they lie in a call's record, learned from the library.
//!
//! The library copies a call's arguments into its record, in a struct per function, and can
//! name and print each. Printing costs microseconds, so it is asked once per function where
//! its arguments are, and they are read there ever after:
//!
//! ```text
//! payload  0         8                                    size - 8    size
//!          │ size    │ arguments (a union of all structs) │ result    │
//! ```
//! (`rocprofiler_callback_tracing_hip_api_data_t` and the like, callback_tracing.h.) It walks
//! over a copy of the struct that is gone when it calls us (hip/defines.hpp, `as_arg_addr`): an
//! address that it passes says how far an argument lies behind the first one, and points to
//! nothing. Types are what `typeid(T).name()` says.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write as _;

use super::sys::{CallbackRecord, Sdk};
use crate::device::sample;

/// An argument: offset in the payload (0: there is none) and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    at: u16,
    width: u8,
}

/// Sizes of a grid or a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sizes {
    x: Place,
    y: Place,
    z: Place,
}

/// The arguments that matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places {
    pub(crate) stream: Place,
    pub(crate) bytes: Place,
    pub(crate) count: Place,
    pub(crate) kind: Place,
    pub(crate) grid: Sizes,
    /// Whether the grid is one of work-items.
    pub(crate) work_items: bool,
    pub(crate) block: Sizes,
    pub(crate) shared: Place,
    pub(crate) source: Place,
    pub(crate) target: Place,
    pub(crate) pointer: Place,
    pub(crate) message: Place,
    pub(crate) range: Place,
    pub(crate) peer: Place,
    pub(crate) root: Place,
}

/// Bytes that the payload of a call may have.
const MAX_ARGUMENTS: usize = 4096;
/// Where a payload has its first argument.
const ARGUMENTS: usize = 8;
/// A stream (`ihipStream_t*`): what is called so and is another type is where one is stored.
const STREAM: &str = "P12ihipStream_t";

/// Bytes of a type by its mangled name (the C++ ABI); none if they are not known.
fn width(ty: &str) -> Option<usize> {
    match ty.as_bytes().first()? {
        b'a' | b'b' | b'c' | b'h' if ty.len() == 1 => Some(1),
        b's' | b't' if ty.len() == 1 => Some(2),
        b'f' | b'i' | b'j' if ty.len() == 1 => Some(4),
        b'd' | b'l' | b'm' | b'x' | b'y' if ty.len() == 1 => Some(8),
        b'P' => Some(8),
        b'0'..=b'9' if ty.ends_with("dim3") || ty.ends_with("dim3_t") => Some(12),
        // A type with a name. Those of arguments that are read are enumerations.
        b'0'..=b'9' => Some(4),
        _ => None,
    }
}

impl Places {
    /// Asks the library where the arguments of the call in `record` lie. Where samples are
    /// kept, also what it said.
    ///
    /// # Safety
    /// `record` is one that the library passed, of a call that is beginning now, and
    /// `payload` its payload.
    pub(crate) unsafe fn learn(
        sdk: &Sdk,
        record: CallbackRecord,
        payload: *const u8,
    ) -> (Places, Option<String>) {
        let Some(arguments) = sdk.arguments else { return (Places::default(), None) };
        // SAFETY: a payload begins with its size.
        let size = unsafe { payload.cast::<u64>().read_unaligned() } as usize;
        let (size, seen) = (size.min(MAX_ARGUMENTS), sample::is_on().then(String::new));
        let mut learner = Learner { first: None, size, places: Places::default(), seen };
        // No argument is dereferenced (0): pointers to results point to nothing yet.
        // SAFETY: the caller's promise; called back within the call.
        unsafe { arguments(record, learn, 0, (&raw mut learner).cast()) };
        (learner.places, learner.seen)
    }
}

impl Place {
    pub(crate) fn is_there(self) -> bool {
        self.at != 0
    }

    /// The argument's value; 0 if there is no such argument.
    ///
    /// # Safety
    /// `payload` is that of a call of the function of which this was learned.
    #[inline]
    pub(crate) unsafe fn read(self, payload: *const u8) -> u64 {
        let at = usize::from(self.at);
        // SAFETY: within the payload: checked when it was learned.
        unsafe {
            match self.width {
                8 => payload.add(at).cast::<u64>().read_unaligned(),
                4 => payload.add(at).cast::<u32>().read_unaligned().into(),
                _ => 0,
            }
        }
    }
}

impl Sizes {
    pub(crate) fn is_there(self) -> bool {
        self.x.is_there()
    }

    /// # Safety
    /// As for [`Place::read`].
    pub(crate) unsafe fn read(self, payload: *const u8) -> [u32; 3] {
        // SAFETY: the caller's promise.
        [self.x, self.y, self.z].map(|place| unsafe { place.read(payload) } as u32)
    }

    /// A struct of three numbers.
    fn all(at: u16) -> Sizes {
        let place = |n: u16| Place { at: at + 4 * n, width: 4 };
        Sizes { x: place(0), y: place(1), z: place(2) }
    }
}

struct Learner {
    /// The address of the first argument, which is only compared.
    first: Option<usize>,
    /// What the library says, where that is wanted.
    seen: Option<String>,
    size: usize,
    places: Places,
}

/// One argument.
///
/// # Safety
/// `learner` is the one that was passed with it; the texts are C strings.
#[allow(clippy::too_many_arguments, reason = "the library's type")]
unsafe extern "C" fn learn(
    _kind: c_int,
    _operation: c_int,
    _number: u32,
    address: *const c_void,
    _indirections: i32,
    ty: *const c_char,
    name: *const c_char,
    _value: *const c_char,
    _dereferences: i32,
    learner: *mut c_void,
) -> c_int {
    if ty.is_null() || name.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise; nothing else uses the learner meanwhile.
    let (learner, ty, name) =
        unsafe { (&mut *learner.cast::<Learner>(), CStr::from_ptr(ty), CStr::from_ptr(name)) };
    let first = *learner.first.get_or_insert(address.addr());
    let at = address.addr().wrapping_sub(first).wrapping_add(ARGUMENTS);
    if let Some(seen) = &mut learner.seen {
        let offset = address.addr().wrapping_sub(first) as isize;
        let _ = write!(seen, "{}:{}@{offset} ", name.to_string_lossy(), ty.to_string_lossy());
    }
    learner.places.add(&name.to_string_lossy(), &ty.to_string_lossy(), at, learner.size);
    0
}

impl Places {
    /// Notes an argument that lies at `at` of a payload of `size` bytes.
    fn add(&mut self, name: &str, ty: &str, at: usize, size: usize) {
        let Some(width) = width(ty) else { return };
        let is_dim = width == 12;
        if at < ARGUMENTS || at.checked_add(width).is_none_or(|end| end > size) {
            return;
        }
        let at = at as u16;
        let place = Place { at, width: width as u8 };
        match name {
            "stream" | "hStream" if ty == STREAM => self.stream = place,
            "sizeBytes" | "size" => self.bytes = place,
            "count" => self.count = place,
            "kind" => self.kind = place,
            "numBlocks" | "gridDim" if is_dim => self.grid = Sizes::all(at),
            "dimBlocks" | "blockDim" | "blockDimX" if is_dim => self.block = Sizes::all(at),
            "gridDimX" => self.grid.x = place,
            "gridDimY" => self.grid.y = place,
            "gridDimZ" => self.grid.z = place,
            "globalWorkSizeX" => (self.grid.x, self.work_items) = (place, true),
            "globalWorkSizeY" => self.grid.y = place,
            "globalWorkSizeZ" => self.grid.z = place,
            "blockDimX" | "localWorkSizeX" => self.block.x = place,
            "blockDimY" | "localWorkSizeY" => self.block.y = place,
            "blockDimZ" | "localWorkSizeZ" => self.block.z = place,
            "sharedMemBytes" => self.shared = place,
            "src" => self.source = place,
            "dst" | "dest" => self.target = place,
            "ptr" | "dev_ptr" => self.pointer = place,
            "message" => self.message = place,
            "id" => self.range = place,
            "peer" => self.peer = place,
            "root" => self.root = place,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_where_the_library_says() {
        // hipLaunchCooperativeKernel: (func, gridDim, blockDimX, params, shared, stream).
        let mut places = Places::default();
        let arguments = [
            ("func", "PKv", 8),
            ("gridDim", "18rocprofiler_dim3_t", 16),
            ("blockDimX", "4dim3", 28),
            ("kernelParams", "PPv", 40),
            ("sharedMemBytes", "j", 48),
            ("stream", "P12ihipStream_t", 56),
        ];
        for (name, ty, at) in arguments {
            places.add(name, ty, at, 72);
        }
        let mut payload = [0_u8; 72];
        payload[16..28].copy_from_slice(bytemuck::cast_slice(&[4_u32, 3, 2]));
        payload[28..40].copy_from_slice(bytemuck::cast_slice(&[128_u32, 1, 1]));
        payload[48..52].copy_from_slice(&256_u32.to_ne_bytes());
        payload[56..64].copy_from_slice(&0x7f00_u64.to_ne_bytes());
        let at = payload.as_ptr();
        // SAFETY: the payload is as large as was said.
        unsafe {
            assert_eq!((places.grid.read(at), places.block.read(at)), ([4, 3, 2], [128, 1, 1]));
            assert_eq!((places.shared.read(at), places.stream.read(at)), (256, 0x7f00));
            assert_eq!(places.bytes.read(at), 0);
        }
        assert!(!places.bytes.is_there() && !places.work_items);
    }

    #[test]
    fn what_lies_outside_of_the_record_is_not_an_argument() {
        let mut places = Places::default();
        for at in [0, 7, 65, usize::MAX] {
            places.add("sizeBytes", "m", at, 72);
        }
        places.add("numBlocks", "4dim3", 64, 72);
        assert_eq!(places, Places::default());
    }

    #[test]
    fn addresses_are_those_of_a_copy() {
        // hipMemcpyAsync: (dst, src, sizeBytes, kind, stream).
        let arguments = [
            (c"dst", c"Pv", 0),
            (c"src", c"PKv", 8),
            (c"sizeBytes", c"m", 16),
            (c"kind", c"13hipMemcpyKind", 24),
            (c"stream", c"P12ihipStream_t", 32),
        ];
        let (places, seen) = (Places::default(), None);
        let mut learner = Learner { first: None, size: 400, places, seen };
        for (number, (name, ty, at)) in (0..).zip(arguments) {
            let address = std::ptr::without_provenance(0x1000 + at);
            let (ty, name, data) = (ty.as_ptr(), name.as_ptr(), (&raw mut learner).cast());
            // SAFETY: C strings and the learner; the address is not followed.
            unsafe { learn(5, 301, number, address, 0, ty, name, c"".as_ptr(), 0, data) };
        }
        let place = |at, width| Place { at, width };
        let Places { target, source, bytes, kind, stream, .. } = learner.places;
        assert_eq!([target, source, bytes], [place(8, 8), place(16, 8), place(24, 8)]);
        assert_eq!([kind, stream], [place(32, 4), place(40, 8)]);
    }

    #[test]
    fn where_a_stream_is_stored_is_none() {
        let mut places = Places::default();
        places.add("stream", "PP12ihipStream_t", 8, 72);
        assert!(!places.stream.is_there());
    }
}
