//! The `exec` calls, except those that take a variable number of arguments: the C library
//! ends them in code of its own, and up to a flush interval may be lost there.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::EXEC_TIMEOUT;
use crate::guard::slow_guard;
use crate::recording;

type Arguments = *const *const c_char;

macro_rules! interpose {
    ($($name:ident = $symbol:literal ($first:ident: $of:ty $(, $arg:ident: $ty:ty)*);)*) => {
        /// The C library's own functions. Looked up when the library is loaded, since
        /// the child of a `vfork` should not; and by constructors that run before that.
        #[allow(non_upper_case_globals, reason = "named after the functions")]
        mod real {
            use super::{AtomicPtr, ptr};
            $(pub(super) static $name: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());)*
        }

        pub(super) fn find_real() {
            $(find(&real::$name, $symbol);)*
        }

        $(
            /// Writes what was recorded, then becomes another program: exec(3).
            ///
            /// # Safety
            /// As exec(3) says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($first: $of $(, $arg: $ty)*) -> c_int {
                slow_guard((), || recording::before_exec(|| Names::may_run($first), EXEC_TIMEOUT));
                let known = real::$name.load(Ordering::Relaxed);
                let real = if known.is_null() { find(&real::$name, $symbol) } else { known };
                type Real = Option<unsafe extern "C" fn($of $(, $ty)*) -> c_int>;
                // SAFETY: what `dlsym` found under this name has this type; null is `None`.
                let real = unsafe { std::mem::transmute::<*mut libc::c_void, Real>(real) };
                match real {
                    Some(real) => {
                        // SAFETY: the caller's own arguments.
                        let result = unsafe { real($first $(, $arg)*) };
                        recording::joined::exec_failed();
                        result
                    }
                    None => {
                        // SAFETY: errno is this thread's.
                        unsafe { *libc::__errno_location() = libc::ENOSYS };
                        -1
                    }
                }
            }
        )*
    };
}

fn find(real: &AtomicPtr<libc::c_void>, symbol: &CStr) -> *mut libc::c_void {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    real.store(found, Ordering::Relaxed);
    found
}

/// Which program an `exec` is about.
trait Names: Copy {
    /// Whether it can probably be run: those that look for one in `PATH` try in vain first.
    fn may_run(self) -> bool;
}

impl Names for *const c_char {
    fn may_run(self) -> bool {
        // SAFETY: not read if null, else what the caller of exec promised, a C string.
        let path = (!self.is_null()).then(|| unsafe { CStr::from_ptr(self) });
        // SAFETY: a C string.
        let runs = |path: &CStr| unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 };
        path.is_some_and(|path| !path.to_bytes().contains(&b'/') || runs(path))
    }
}

impl Names for c_int {
    fn may_run(self) -> bool {
        true
    }
}

interpose! {
    execve = c"execve" (path: *const c_char, argv: Arguments, envp: Arguments);
    execv = c"execv" (path: *const c_char, argv: Arguments);
    execvp = c"execvp" (file: *const c_char, argv: Arguments);
    execvpe = c"execvpe" (file: *const c_char, argv: Arguments, envp: Arguments);
    fexecve = c"fexecve" (fd: c_int, argv: Arguments, envp: Arguments);
}
