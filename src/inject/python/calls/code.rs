//! Code objects, and what calls of them are called.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kymograph_protos::{ColdRecorder, StrId};

use super::{Calls, MODULES, OURS, Object, modules, wanted};
use crate::recorder::PIPELINE;

/// Code objects that are kept, at most; and places for them.
const MAX: usize = 1 << 15;
const SLOTS: usize = 1 << 16;
/// Places looked at.
const PROBES: usize = 16;

/// Code objects and the ids of their names: an address of 48 bits, and an id of 16 ([`OF_SELF`]:
/// it depends on the module that is called). Those that are here are never freed, so that no other
/// has the address.
static KNOWN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Bit of an address, which is aligned: calls of this code make a generator or a coroutine.
const MAKES_GENERATORS: u64 = 1;
/// `CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR` of Python's code.h.
const GENERATOR_FLAGS: i64 = 0x20 | 0x80 | 0x200;

/// The calls of modules.
const OF_SELF: u16 = u16::MAX;
/// Of what is not recorded.
const NOT: u16 = 0;

impl Calls {
    /// Whether calls of this code are recorded at all.
    ///
    /// # Safety
    /// `code` is a code object, and the interpreter's lock is held.
    #[inline]
    pub(super) unsafe fn is_wanted(&self, code: Object) -> bool {
        // SAFETY: the caller's promise.
        wanted() != MODULES || unsafe { self.id(code) } != NOT
    }

    /// The name of a call of `code`; none if that is not recorded. `module` returns a reference to
    /// the first argument: asked for only if that is the module that is called.
    ///
    /// # Safety
    /// As the arguments say, and the interpreter's lock is held.
    #[inline]
    pub(super) unsafe fn site(
        &self,
        code: Object,
        module: impl FnOnce() -> Option<Object>,
    ) -> StrId {
        // SAFETY: the caller's promise.
        unsafe {
            match self.id(code) {
                OF_SELF => {
                    let name = module().and_then(|module| modules::name(self, module));
                    name.unwrap_or_else(|| self.intern(code))
                }
                id => StrId(id.into()),
            }
        }
    }

    /// Whether a call of `code` makes a generator, which runs the code later.
    ///
    /// # Safety
    /// As [`Calls::is_wanted`].
    #[inline]
    pub(super) unsafe fn makes_generators(&self, code: Object) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.known(code) >> 16 & MAKES_GENERATORS != 0 }
    }

    /// # Safety
    /// As [`Calls::is_wanted`].
    #[inline]
    unsafe fn id(&self, code: Object) -> u16 {
        // SAFETY: the caller's promise.
        unsafe { self.known(code) as u16 }
    }

    /// What [`KNOWN`] has of it.
    ///
    /// # Safety
    /// As [`Calls::is_wanted`].
    #[inline]
    unsafe fn known(&self, code: Object) -> u64 {
        let address = code.addr() as u64;
        // The golden ratio: neighbours in memory come to lie far from one another.
        let home = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
        for slot in (0..PROBES).map(|n| &KNOWN[(home + n) % SLOTS]) {
            let known = slot.load(Ordering::Acquire);
            if known >> 16 & !MAKES_GENERATORS == address {
                return known;
            }
            if known == 0 {
                // SAFETY: as the caller says.
                return unsafe { self.look_up(code, Some(slot)) };
            }
        }
        // SAFETY: as above.
        unsafe { self.look_up(code, None) }
    }

    /// # Safety
    /// As [`Calls::is_wanted`].
    #[cold]
    unsafe fn look_up(&self, code: Object, slot: Option<&AtomicU64>) -> u64 {
        let mut address = code.addr() as u64;
        // SAFETY: the caller's promise.
        unsafe {
            let is_step = || modules::is_step(self, code);
            let mut lost = false;
            let id = if self.is_ours(code) {
                NOT
            } else if modules::is_call(self, code) {
                OF_SELF
            } else if wanted() == MODULES && !is_step() {
                NOT
            } else {
                let id = self.intern(code);
                match u16::try_from(id.0) {
                    Ok(id) if id != NOT && id != OF_SELF => id,
                    _ => {
                        PIPELINE.lost(1);
                        lost = true;
                        NOT
                    }
                }
            };
            if self.number(code, c"co_flags").is_some_and(|flags| flags & GENERATOR_FLAGS != 0) {
                address |= MAKES_GENERATORS;
            }
            let known = address << 16 | u64::from(id);
            if lost {
                return known;
            }
            if let Some(slot) = slot.filter(|_| address < 1 << 48)
                && KEPT.fetch_add(1, Ordering::Relaxed) < MAX
            {
                (self.keep)(code);
                // Under the interpreter's lock; without one (free threading) the last one stays,
                // and the other's reference as well, which is what matters.
                slot.store(known, Ordering::Release);
            }
            known
        }
    }

    /// The id of `file.py(12): function`.
    ///
    /// # Safety
    /// As [`Calls::is_wanted`].
    unsafe fn intern(&self, code: Object) -> StrId {
        // SAFETY: the caller's promise.
        let name = unsafe { self.name(code) };
        name.map_or(StrId::NONE, |name| PIPELINE.intern_or_wait(self.category, &name))
    }

    /// # Safety
    /// As [`Calls::is_wanted`].
    unsafe fn is_ours(&self, code: Object) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.text(code, c"co_filename") == Some(OURS.to_bytes().to_vec()) }
    }

    /// An attribute that is a text.
    ///
    /// # Safety
    /// `object` is one, and the interpreter's lock is held.
    pub(super) unsafe fn text(&self, object: Object, name: &CStr) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise; a reference is given back after use.
        unsafe {
            let value = (self.attribute)(object, name.as_ptr());
            let mut found = None;
            if !value.is_null() {
                let text = (self.utf8)(value);
                found = (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes().to_vec());
                (self.release)(value);
            }
            if found.is_none() {
                (self.clear)();
            }
            found
        }
    }

    /// An attribute that is a number.
    ///
    /// # Safety
    /// As [`Calls::text`].
    unsafe fn number(&self, object: Object, name: &CStr) -> Option<i64> {
        // SAFETY: the caller's promise; a reference is given back after use.
        unsafe {
            let value = (self.attribute)(object, name.as_ptr());
            if value.is_null() {
                (self.clear)();
                return None;
            }
            let number = (self.long)(value);
            (self.release)(value);
            Some(number)
        }
    }

    /// `file.py(12): function`.
    ///
    /// # Safety
    /// As [`Calls::is_wanted`].
    unsafe fn name(&self, code: Object) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise; references are given back after use.
        unsafe {
            let path = self.text(code, c"co_filename")?;
            let called = self.text(code, c"co_name")?;
            let line = self.number(code, c"co_firstlineno")?;
            Some(function_name(&path, line, &called, &self.folder))
        }
    }
}

/// `file.py(12): function`, as PyTorch's profiler names a function.
pub(in crate::inject::python) fn function_name(
    path: &[u8],
    line: i64,
    function: &[u8],
    folder: &[u8],
) -> Vec<u8> {
    let mut text = short(path, folder).to_vec();
    text.extend_from_slice(format!("({line}): ").as_bytes());
    text.extend_from_slice(function);
    text
}

/// A file's path without the folder that modules are in, or that the program was started in.
fn short<'a>(path: &'a [u8], folder: &[u8]) -> &'a [u8] {
    const FOLDERS: [&[u8]; 2] = [b"/site-packages/", b"/dist-packages/"];
    let after = |folder: &[u8]| {
        let at = path.windows(folder.len()).rposition(|part| part == folder)?;
        Some(&path[at + folder.len()..])
    };
    let library = || {
        let at = path.windows(11).rposition(|part| part == b"/lib/python")?;
        let rest = &path[at + 11..];
        Some(&rest[rest.iter().position(|byte| *byte == b'/')? + 1..])
    };
    let found = FOLDERS.iter().find_map(|folder| after(folder)).or_else(library);
    found.or_else(|| path.strip_prefix(folder)).unwrap_or(path)
}
