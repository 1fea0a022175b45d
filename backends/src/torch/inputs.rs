//! Shapes, types and values of operators' inputs, as texts.
//!
//! An operator is called again and again with the same ones. So what it is called with is hashed,
//! and a table has the ids of the four texts by the hash: they are only written for inputs that
//! are new. The texts are JSON, as in Kineto's files, but that JSON is a text here.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use kymograph_protos::{ColdRecorder, StrId};

use super::layout::read;
use super::texts::Texts;
use super::values::{DOUBLE, INT, TENSOR, Tensor, VALUE_BYTES, Values};
use crate::annotate::memory;

/// The arguments that the texts are.
pub(super) const NAMES: [&str; 4] =
    ["Input Dims", "Input Strides", "Input type", "Concrete Inputs"];

/// Inputs at most of an operator, and elements of one that is a list.
const MAX_VALUES: usize = 256;
/// Lists of numbers that are longer are not told, as in Kineto.
pub(super) const LONG: usize = 30;

const SLOTS: usize = 1 << 13;
/// Texts at most that are kept.
const MAX_KEPT: usize = 1 << 15;

static TABLE: [AtomicPtr<Known>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static KEPT: AtomicUsize = AtomicUsize::new(0);

struct Known {
    hash: u64,
    texts: [StrId; 4],
}

/// Some values in a row.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'v> {
    first: *const u8,
    count: usize,
    pub(super) values: &'v Values,
}

/// One of them.
pub(super) enum Input<'v> {
    Tensor(Tensor),
    Int(i64),
    Double(f64),
    Bool(bool),
    Tensors(Inputs<'v>),
    List(Inputs<'v>),
    Other,
}

impl<'v> Inputs<'v> {
    /// # Safety
    /// `array` is where an ArrayRef of IValues lies that live as long as this.
    #[inline(always)]
    pub(super) unsafe fn of(array: *const u8, values: &'v Values) -> Inputs<'v> {
        // SAFETY: the caller's promise.
        unsafe { Inputs { first: read(array, 0), count: read(array, 8), values } }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(super) fn iter(self) -> impl Iterator<Item = Input<'v>> {
        (0..self.count.min(MAX_VALUES)).map(move |index| {
            // SAFETY: inside of the array, which lives as the constructor was promised.
            unsafe { self.input(self.first.add(index * VALUE_BYTES)) }
        })
    }

    /// # Safety
    /// `value` is an IValue that lives.
    #[inline(always)]
    unsafe fn input(self, value: *const u8) -> Input<'v> {
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            match read::<u32>(value, 8) {
                TENSOR => Input::Tensor(Tensor::of(value, self.values)),
                DOUBLE => Input::Double(read(value, 0)),
                INT => Input::Int(read(value, 0)),
                tag if tag == self.values.bools => Input::Bool(read::<u8>(value, 0) != 0),
                tag if tag == self.values.lists => {
                    let list: *const u8 = read(value, 0);
                    let (first, end): (*const u8, *const u8) =
                        (read(list, self.values.elements), read(list, self.values.elements + 8));
                    let count = end.addr().saturating_sub(first.addr()) / VALUE_BYTES;
                    let elements = Inputs { first, count, values: self.values };
                    if self.values.is_of_tensors(list) {
                        Input::Tensors(elements)
                    } else {
                        Input::List(elements)
                    }
                }
                _ => Input::Other,
            }
        }
    }

    /// What tells these from others.
    #[inline]
    fn hash(self, seed: u64) -> u64 {
        let mut hash = mix(seed, self.count as u64);
        for input in self.iter() {
            hash = match input {
                Input::Tensor(tensor) => {
                    // SAFETY: it lives as long as the input.
                    let (shape, dtype) = unsafe { (tensor.shape(), tensor.dtype()) };
                    let (sizes, strides) = shape.unwrap_or((&[], &[]));
                    let head = u64::from(dtype) << 32 | (sizes.len() << 8 | strides.len()) as u64;
                    let words = sizes.iter().chain(strides);
                    words.fold(mix(hash, head), |hash, word| mix(hash, word.cast_unsigned()))
                }
                Input::Int(n) => mix(mix(hash, 1 << 48), n.cast_unsigned()),
                Input::Double(x) => mix(mix(hash, 2 << 48), x.to_bits()),
                Input::Bool(x) => mix(hash, 3 << 48 | u64::from(x)),
                Input::Tensors(list) => list.hash(mix(hash, 4 << 48)),
                Input::List(list) => list.hash(mix(hash, 5 << 48)),
                Input::Other => mix(hash, 6 << 48),
            };
        }
        hash
    }

    /// The ids of the texts of [`NAMES`], none of one that has no id.
    #[inline]
    pub(super) fn texts(self, recorder: &dyn ColdRecorder) -> [StrId; 4] {
        let hash = self.hash(0x4b79_6d6f);
        let slot = &TABLE[hash as usize % SLOTS];
        // SAFETY: null, or one that is never freed.
        match unsafe { slot.load(Ordering::Acquire).as_ref() } {
            Some(known) if known.hash == hash => known.texts,
            _ => self.write(recorder, hash, slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn write(self, recorder: &dyn ColdRecorder, hash: u64, slot: &AtomicPtr<Known>) -> [StrId; 4] {
        let Some(texts) = Texts::of(self) else { return [StrId::NONE; 4] };
        let texts = texts.all().map(|text| recorder.intern_or_wait(StrId::NONE, text));
        let missing = texts.iter().filter(|text| text.is_none()).count();
        (0..missing).for_each(|_| recorder.cut_short());
        let whole = missing == 0;
        if whole
            && KEPT.fetch_add(1, Ordering::Relaxed) < MAX_KEPT
            && let Some(known) = memory::keep(Known { hash, texts })
        {
            slot.store(known, Ordering::Release);
        }
        texts
    }
}

#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let wide = u128::from(hash ^ word.wrapping_mul(K)) * u128::from(K ^ 0x6a09_e667_f3bc_c909);
    (wide as u64) ^ (wide >> 64) as u64 ^ word.rotate_left(23)
}
