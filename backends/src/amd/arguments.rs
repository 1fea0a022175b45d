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
//! (`rocprofiler_callback_tracing_hip_api_data_t` and the like, callback_tracing.h.)

use std::ffi::{CStr, c_char, c_int, c_void};

use super::sys::{CallbackRecord, Sdk};

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
const LARGEST: usize = 4096;

impl Places {
    /// Asks the library where the arguments of the call in `record` lie.
    ///
    /// # Safety
    /// `record` is one that the library passed, of a call that is beginning now, and
    /// `payload` its payload.
    pub(crate) unsafe fn learn(sdk: &Sdk, record: CallbackRecord, payload: *const u8) -> Places {
        let Some(arguments) = sdk.arguments else { return Places::default() };
        // SAFETY: a payload begins with its size.
        let size = unsafe { payload.cast::<u64>().read_unaligned() } as usize;
        let mut learner = Learner { payload, size: size.min(LARGEST), places: Places::default() };
        // No argument is dereferenced (0): pointers to results point to nothing yet.
        // SAFETY: the caller's promise; called back within the call.
        unsafe { arguments(record, learn, 0, (&raw mut learner).cast()) };
        learner.places
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
    payload: *const u8,
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
    // SAFETY: the caller's promise; nobody else uses the learner meanwhile.
    let (learner, ty, name) =
        unsafe { (&mut *learner.cast::<Learner>(), CStr::from_ptr(ty), CStr::from_ptr(name)) };
    let at = (address as usize).wrapping_sub(learner.payload as usize);
    learner.places.add(&name.to_string_lossy(), &ty.to_string_lossy(), at, learner.size);
    0
}

impl Places {
    /// Notes an argument that lies at `at` of a payload of `size` bytes.
    fn add(&mut self, name: &str, ty: &str, at: usize, size: usize) {
        let is_dim = ty.contains("dim3");
        let narrow = ["unsigned int", "uint32_t", "int32_t"].contains(&ty) || ty == "int";
        let width = match name {
            _ if is_dim => 12,
            "kind" | "datatype" | "op" | "peer" | "root" => 4,
            _ if narrow => 4,
            _ => 8,
        };
        if at < 8 || at.checked_add(width).is_none_or(|end| end > size) {
            return;
        }
        let at = at as u16;
        let place = Place { at, width: width as u8 };
        match name {
            "stream" | "hStream" => self.stream = place,
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
            ("func", "void const*", 8),
            ("gridDim", "rocprofiler_dim3_t", 16),
            ("blockDimX", "rocprofiler_dim3_t", 28),
            ("kernelParams", "void**", 40),
            ("sharedMemBytes", "unsigned int", 48),
            ("stream", "ihipStream_t*", 56),
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
            places.add("sizeBytes", "unsigned long", at, 72);
        }
        places.add("numBlocks", "dim3", 64, 72);
        assert_eq!(places, Places::default());
    }
}
