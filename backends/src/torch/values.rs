//! What is read of operators' inputs, and how that is found out.
//!
//! ```text
//! IValue            TensorImpl, from its sizes_and_strides_ on      ListImpl
//!  0 payload          0 how many dimensions                            … vector of IValue
//!  8 tag              8 five sizes, five strides; or where they lie    … type of the elements
//! 16                 96 numel_
//!                   104 data_type_
//!                   109 bits
//! ```
//! Objects that are counted begin with a vtable and two counts, of 16 bytes in all or, before
//! 2.2, of 24. Tags are numbered in order of the header's list (ATen/core/ivalue.h), into which
//! some came later. Both are read of the code of `IValue::isTensorList`, which looks at the tag
//! and at the type: all versions have it. What a tensor has before its sizes is found out with a
//! tensor of our own.

use std::ffi::c_void;
use std::ptr;

use super::layout::read;
use crate::load::Library;

/// `c10::IValue`.
pub(super) const VALUE_BYTES: usize = 16;
pub(super) const TENSOR: u32 = 1;
pub(super) const DOUBLE: u32 = 3;
pub(super) const INT: u32 = 5;
/// What a `c10::Type` says of tensors, in its second word.
const TENSOR_TYPE: u32 = 3;

/// What differs from version to version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Values {
    pub(super) bools: u32,
    pub(super) lists: u32,
    /// Where a list has its vector.
    pub(super) elements: usize,
    /// Where a tensor has its sizes.
    pub(super) sizes: usize,
}

/// From a tensor's sizes on.
const INLINE: usize = 8;
const NUMEL: usize = 96;
const DTYPE: usize = 104;
const BITS: usize = 109;
/// Dimensions that lie in the tensor itself.
const FEW: usize = 5;
/// More than any tensor has.
pub(super) const MAX_DIMENSIONS: usize = 64;

impl Values {
    /// Of the library.
    ///
    /// # Errors
    /// It has none that are known; the text says what is missing.
    pub(super) fn find(library: Library) -> Result<Values, &'static str> {
        let code = library.symbol(c"_ZNK3c106IValue12isTensorListEv").ok_or("isTensorList")?;
        // SAFETY: code of the library, where much more follows.
        let code = unsafe { std::slice::from_raw_parts(code.as_ptr().cast::<u8>(), 64) };
        let (lists, element_type) = read_code(code).ok_or("isTensorList is another one")?;
        // Bool came after Int, SymInt and SymFloat; then SymBool before it, then UInt.
        let bools = match lists {
            12..=14 => lists - 4,
            _ => return Err("unknown tags of values"),
        };
        let elements = element_type - 24;
        // Four pointers, and what belongs to Python.
        let sizes = match elements {
            24 => 72,
            16 => newer_tensor(library)?,
            _ => return Err("unknown counts of objects"),
        };
        Ok(Values { bools, lists, elements, sizes })
    }

    /// Whether a list is one of tensors.
    ///
    /// # Safety
    /// `list` is a ListImpl.
    pub(super) unsafe fn is_of_tensors(&self, list: *const u8) -> bool {
        // SAFETY: the caller's promise; a list has a type, and types are of one layout.
        unsafe {
            let element_type: *const u8 = read(list, self.elements + 24);
            !element_type.is_null() && read::<u32>(element_type, 8) == TENSOR_TYPE
        }
    }
}

/// The tag of lists, and where these have the type of their elements: what is compared with 8
/// bytes from the argument (`cmpl $N, 8(%rdi)`), and what is read next of the object to which it
/// points (`mov (%rdi), %rbx`, `mov M(%rbx), %rax`) and is compared with the tag of tensors
/// (`cmpl $3, 8(%rax)`). Compilers choose the registers.
fn read_code(code: &[u8]) -> Option<(u32, usize)> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let at = code.windows(3).position(|bytes| bytes == [0x83, 0x7f, 8])?;
    let tag = *code.get(at + 3)?;
    // 64-bit loads: which register is read, and which one written.
    let load = |bytes: &[u8]| bytes.starts_with(&[0x48, 0x8b]).then(|| bytes[2]);
    let object = code.windows(3).find_map(|bytes| load(bytes).filter(|way| way & 0xc7 == 0x07))?;
    let object = object >> 3 & 7;
    let field = code[at..].windows(8).find_map(|bytes| {
        let way = load(bytes).filter(|way| way & 0xc7 == 0x40 | object)?;
        let compared = [0x83, 0x78 | way >> 3 & 7, 8, TENSOR_TYPE as u8];
        (bytes[4..] == compared).then_some(usize::from(bytes[3]))
    })?;
    (field >= 24 + 8).then_some((tag.into(), field))
}

/// Where the sizes lie of a tensor that is made for this, by PyTorch's own C interface
/// (torch/csrc/inductor/aoti_torch/c/shim.h, from 2.2 on).
fn newer_tensor(library: Library) -> Result<usize, &'static str> {
    type Make =
        unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut *mut c_void) -> i32;
    type Delete = unsafe extern "C" fn(*mut c_void) -> i32;
    let make = library.symbol(c"aoti_torch_empty_strided").ok_or("aoti_torch_empty_strided")?;
    let delete = library
        .symbol(c"aoti_torch_delete_tensor_object")
        .ok_or("aoti_torch_delete_tensor_object")?;
    // SAFETY: the functions of these names have these types.
    let (make, delete) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Make>(make.as_ptr()),
            std::mem::transmute::<*mut c_void, Delete>(delete.as_ptr()),
        )
    };
    const SIZES: [i64; 3] = [3, 5, 7];
    const STRIDES: [i64; 3] = [35, 7, 1];
    const FLOAT: i32 = 6;
    const CPU: i32 = 0;
    let mut tensor = ptr::null_mut();
    // SAFETY: three sizes and strides, and room for a handle.
    let made = unsafe { make(3, SIZES.as_ptr(), STRIDES.as_ptr(), FLOAT, CPU, 0, &raw mut tensor) };
    if made != 0 || tensor.is_null() {
        return Err("no tensor could be made");
    }
    // With and without a pointer to an interpreter, before that to the object.
    let found = [64, 56].into_iter().find(|sizes| {
        // SAFETY: a handle points to a pointer to the tensor, which is larger than what is read.
        unsafe {
            let tensor = Tensor { start: read::<*const u8>(tensor.cast(), 0).add(*sizes) };
            tensor.shape() == Some((&SIZES[..], &STRIDES[..]))
                && read::<i64>(tensor.start, NUMEL) == 105
                && tensor.dtype() == FLOAT as u16
        }
    });
    // SAFETY: a handle that is not used any more.
    unsafe { delete(tensor) };
    found.ok_or("tensors are laid out in an unknown way")
}

/// A tensor, from its sizes on.
#[derive(Clone, Copy)]
pub(super) struct Tensor {
    start: *const u8,
}

impl Tensor {
    /// # Safety
    /// `value` is an IValue that is a tensor, and lives as long as this.
    #[inline(always)]
    pub(super) unsafe fn of(value: *const u8, values: &Values) -> Tensor {
        // SAFETY: the caller's promise.
        Tensor { start: unsafe { read::<*const u8>(value, 0).add(values.sizes) } }
    }

    /// Sizes and strides; none if the tensor does not say them plainly. Those of some (sparse
    /// ones) are not told: empty.
    ///
    /// # Safety
    /// It lives.
    #[inline(always)]
    pub(super) unsafe fn shape<'a>(self) -> Option<(&'a [i64], &'a [i64])> {
        // SAFETY: the caller's promise, and what the module says of its layout.
        unsafe {
            let count: usize = read(self.start, 0);
            let bits: u16 = read(self.start, BITS);
            let (policy, symbolic) = (bits >> 10 & 3, bits >> 12 & 1);
            if count > MAX_DIMENSIONS || policy > 1 || symbolic != 0 {
                return None;
            }
            let inline = self.start.add(INLINE).cast::<i64>();
            let (sizes, strides) = if count <= FEW {
                (inline, inline.add(FEW))
            } else {
                let there = inline.cast::<*const i64>().read();
                (there, there.add(count))
            };
            let list = |from| std::slice::from_raw_parts(from, count);
            Some((list(sizes), if policy == 0 { list(strides) } else { &[] }))
        }
    }

    /// `c10::ScalarType`.
    ///
    /// # Safety
    /// It lives.
    #[inline(always)]
    pub(super) unsafe fn dtype(self) -> u16 {
        // SAFETY: as in `shape`.
        unsafe { read(self.start, DTYPE) }
    }
}

/// What PyTorch calls a type of elements in its traces; empty if it has none.
pub(super) fn dtype_name(dtype: u16) -> &'static str {
    const NAMES: [&str; 30] = [
        "unsigned char",
        "signed char",
        "short int",
        "int",
        "long int",
        "c10::Half",
        "float",
        "double",
        "c10::complex<c10::Half>",
        "c10::complex<float>",
        "c10::complex<double>",
        "bool",
        "c10::qint8",
        "c10::quint8",
        "c10::qint32",
        "c10::BFloat16",
        "c10::quint4x2",
        "c10::quint2x4",
        "c10::bits1x8",
        "c10::bits2x4",
        "c10::bits4x2",
        "c10::bits8",
        "c10::bits16",
        "c10::Float8_e5m2",
        "c10::Float8_e4m3fn",
        "c10::Float8_e5m2fnuz",
        "c10::Float8_e4m3fnuz",
        "short unsigned int",
        "unsigned int",
        "long unsigned int",
    ];
    NAMES.get(usize::from(dtype)).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_says_the_layout() {
        // isTensorList of PyPI's 2.15 and of Debian's 1.13.
        let new = [
            0x55, 0x53, 0x48, 0x83, 0xec, 0x18, 0x83, 0x7f, 0x08, 0x0e, 0x48, 0x8b, 0x1f, 0x75,
            0x51, 0x48, 0x8b, 0x43, 0x28, 0x83, 0x78, 0x08, 0x03,
        ];
        let old = [
            0x48, 0x8b, 0x1f, 0x31, 0xc0, 0x83, 0x7f, 0x08, 0x0c, 0x75, 0x61, 0x48, 0x8b, 0x43,
            0x30, 0x83, 0x78, 0x08, 0x03,
        ];
        // Debian's 2.6 watches its stack.
        let hardened = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x53, 0x48, 0x83, 0xec, 0x38, 0x64, 0x48, 0x8b, 0x04,
            0x25, 0x28, 0x00, 0x00, 0x00, 0x48, 0x89, 0x44, 0x24, 0x28, 0x31, 0xc0, 0x83, 0x7f,
            0x08, 0x0d, 0x75, 0x68, 0x48, 0x8b, 0x2f, 0x48, 0x8b, 0x45, 0x28, 0x83, 0x78, 0x08,
            0x03, 0x74, 0x7b,
        ];
        assert_eq!(read_code(&hardened), Some((13, 0x28)));
        assert_eq!(read_code(&new), Some((14, 0x28)));
        assert_eq!(read_code(&old), Some((12, 0x30)));
        assert_eq!(read_code(&new[..9]), None);
        assert_eq!(read_code(&[0; 64]), None);
    }
}
