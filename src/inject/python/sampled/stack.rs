//! Threads of the interpreter and their stacks, read while they run.

use std::collections::HashMap;
use std::ffi::c_void;

use super::layout::{INTERPRETER, LENGTH, Layout, Number, STATE, TYPE};
use super::memory::{read, read_bytes, read_words};
use crate::inject::python::calls::function_name;

/// Frames of a stack, threads, and characters of a text that are read at most.
const MAX_FRAMES: usize = 512;
const MAX_THREADS: usize = 1024;
const MAX_TEXT: usize = 1024;
/// Functions whose names are kept.
const MAX_NAMES: usize = 1 << 14;
/// How often a stack is read that changes meanwhile.
const TRIES: usize = 3;

type ThreadHead = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// See the module.
pub(super) struct Reader {
    pub(super) layout: &'static Layout,
    /// The main interpreter, and how it is asked for its threads.
    pub(super) interpreter: *mut c_void,
    pub(super) threads: ThreadHead,
    /// The type of code objects.
    pub(super) code: usize,
    /// Where a thread's number lies in what a `pthread_t` points to.
    pub(super) number: usize,
    pub(super) folder: Vec<u8>,
    pub(super) names: HashMap<usize, Function>,
}

// SAFETY: the interpreter's struct is only read, and through the kernel.
unsafe impl Send for Reader {}

/// A function that was read, and what it is known by: its code's file, name and first line.
pub(super) struct Function {
    key: [usize; 3],
    pub(super) name: Vec<u8>,
}

/// Code objects, the innermost first.
pub(super) type Stack = Vec<usize>;

impl Reader {
    pub(super) fn version(&self) -> &'static str {
        self.layout.version
    }

    /// The threads that the interpreter has: where their structs lie.
    pub(super) fn threads(&self) -> Vec<usize> {
        let head = match self.layout.threads {
            Some(at) => read(self.interpreter.addr() + at),
            // SAFETY: reads one word of a struct that is never freed.
            None => Some(unsafe { (self.threads)(self.interpreter) }.expose_provenance()),
        };
        let next = |thread: &usize| read(thread + self.layout.next).filter(|next| *next != 0);
        let head = head.filter(|head| *head != 0);
        std::iter::successors(head, next).take(MAX_THREADS).collect()
    }

    /// The system's number of a thread.
    pub(super) fn number(&self, thread: usize) -> Option<u32> {
        match self.layout.thread {
            Number::System(at) => read::<u64>(thread + at).and_then(|n| u32::try_from(n).ok()),
            Number::Posix(at) => read(read::<usize>(thread + at)? + self.number),
        }
        .filter(|number| *number != 0)
    }

    /// The stack of a thread, which is empty if it runs no Python; none if it did not stand still
    /// for as long as it takes to read.
    pub(super) fn stack(&self, thread: usize) -> Option<Stack> {
        (0..TRIES).find_map(|_| self.try_stack(thread))
    }

    fn innermost(&self, thread: usize) -> Option<usize> {
        let mut at = thread;
        for place in self.layout.innermost {
            at = read(at + place)?;
            if at == 0 {
                break;
            }
        }
        Some(at)
    }

    fn try_stack(&self, thread: usize) -> Option<Stack> {
        let Layout { code, back, owner, .. } = *self.layout;
        let first = self.innermost(thread)?;
        let (mut places, mut words) = (Vec::new(), Vec::new());
        let mut stack = Stack::new();
        let mut at = first;
        while at != 0 {
            if stack.len() >= MAX_FRAMES || places.len() >= 4 * MAX_FRAMES {
                // The outermost are left out.
                break;
            }
            // As much as the largest of these structs has of what is read.
            let frame: [usize; 9] = read(at)?;
            let (function, caller) = (frame[code / 8], frame[back / 8]);
            let is_own =
                owner.is_some_and(|owner| frame[owner / 8].to_ne_bytes()[owner % 8] == INTERPRETER);
            places.extend([at + code, at + back]);
            words.extend([function, caller]);
            if !is_own {
                stack.push(function);
            }
            at = caller;
        }
        // The same once more, so that it is a stack that was there, and all of it code.
        let types: Vec<usize> = stack.iter().map(|code| code.wrapping_add(TYPE)).collect();
        let same = read_words(&places)? == words && self.innermost(thread)? == first;
        let is_code = read_words(&types)?.iter().all(|found| *found == self.code);
        (same && is_code).then_some(stack)
    }

    /// The names of functions, as many as `codes`; none if one of them is gone.
    pub(super) fn names(&mut self, codes: &[usize]) -> Option<Vec<&[u8]>> {
        let Layout { file, name, line, .. } = *self.layout;
        let places: Vec<usize> =
            codes.iter().flat_map(|code| [code + file, code + name, code + line]).collect();
        let words = read_words(&places)?;
        for (code, key) in codes.iter().zip(words.chunks_exact(3)) {
            // The line is an `int`.
            let key = [key[0], key[1], key[2] & u32::MAX as usize];
            if self.names.get(code).is_some_and(|known| known.key == key) {
                continue;
            }
            let (path, function) = (self.text(key[0])?, self.text(key[1])?);
            if self.names.len() >= MAX_NAMES {
                self.names.clear();
            }
            let name = function_name(&path, key[2] as i64, &function, &self.folder);
            self.names.insert(*code, Function { key, name });
        }
        codes.iter().map(|code| Some(&*self.names.get(code)?.name)).collect()
    }

    /// A text, as UTF-8.
    fn text(&self, at: usize) -> Option<Vec<u8>> {
        let length = read::<usize>(at + LENGTH)?.min(MAX_TEXT);
        let state: u32 = read(at + STATE)?;
        let (width, is_ascii) = ((state >> 2 & 7) as usize, state >> 6 & 1 != 0);
        if !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let bytes = read_bytes(at + self.layout.text[usize::from(!is_ascii)], length * width)?;
        let characters = bytes.chunks_exact(width).map(|character| {
            let mut wide = [0; 4];
            wide[..width].copy_from_slice(character);
            char::from_u32(u32::from_le_bytes(wide)).unwrap_or('\u{fffd}')
        });
        Some(characters.collect::<String>().into_bytes())
    }
}
