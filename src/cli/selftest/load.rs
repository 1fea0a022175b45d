//! Functions of a vendor's library, found when the work begins.

use std::ffi::{CStr, CString, c_void};

/// A library, which stays.
#[derive(Clone, Copy)]
pub(super) struct Library(*mut c_void);

// SAFETY: a handle of the loader, which may be used from any thread and is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The first that can be loaded: as a program that is linked with it has it, so that what
    /// comes before it in the process is found first.
    pub(super) fn load(names: &[&str]) -> Result<Library, String> {
        for name in names {
            let text = CString::new(*name).unwrap_or_default();
            // SAFETY: a C string; this process is there to run the library's code.
            let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if !handle.is_null() {
                return Ok(Library(handle));
            }
        }
        Err(format!("no {}", names.join(" or ")))
    }

    /// What the process shares already.
    pub(super) fn of_process() -> Library {
        Library(libc::RTLD_DEFAULT)
    }

    /// Where a function lies, for a program that is linked with the library.
    pub(super) fn find(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a C string; null stands for all that the process shares.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if !found.is_null() {
            return Some(found);
        }
        // SAFETY: a handle that stays, and a C string.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// The same, as a function.
    ///
    /// # Safety
    /// `F` is the type of the function with this name.
    pub(super) unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let found = self.find(name).ok_or_else(|| format!("no {}", name.to_string_lossy()))?;
        // SAFETY: the caller's promise.
        Ok(unsafe { std::mem::transmute_copy(&found) })
    }
}

/// Makes a struct `Functions` of functions that return a `Status`, by the names that they have in a
/// library, or in two that have the same ones.
macro_rules! functions {
    ($($name:ident = $symbol:literal $(| $other:literal)? : fn($($arg:ty),* $(,)?);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) -> Status,)*
        }

        impl Functions {
            /// `which`: of the names.
            fn find(library: Library, which: usize) -> Result<Functions, String> {
                $(
                    let names = [$symbol $(, $other)?];
                    // SAFETY: the library's header declares it so.
                    let $name = unsafe { library.function(names[which])? };
                )*
                Ok(Functions { $($name),* })
            }
        }
    };
}
pub(super) use functions;

/// Calls one of the functions of something that has some; `check` says what its status means.
macro_rules! call {
    ($library:expr, $function:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: the arguments are what the function's type says: places that live for the
        // call, and handles of the same library.
        check(stringify!($function), unsafe { ($library.functions.$function)($($arg),*) })
    };
}
pub(super) use call;
