//! Vendors' own libraries, which `tests/oracle/setup` fetches, in processes of their own.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder with the libraries of this name; `None`, with the reason printed, where they
/// cannot be had.
pub(crate) fn libraries(name: &str) -> Option<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests");
    let output = Command::new(tests.join("oracle/setup")).arg(name).output().expect("setup");
    let reason = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        println!("not tested: {reason}");
        return None;
    }
    assert!(output.status.success(), "{reason}");
    Some(tests.join(".tools").join(name))
}

/// The child that asks a library: this program's test `the_child_asks`.
pub(crate) fn child() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command.args(["--exact", "the_child_asks", "--nocapture"]);
    command
}

/// What the child said of it, in lines that begin with `>`.
pub(crate) fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.strip_prefix("> ")).map(str::to_owned).collect()
}

/// A library in the child.
pub(crate) struct Library(*mut c_void);

impl Library {
    pub(crate) fn load(path: &str) -> Library {
        let path = CString::new(path).expect("no NUL");
        // SAFETY: a vendor's library.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "cannot load {path:?}");
        Library(library)
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: a library and a string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    pub(crate) fn has(&self, name: &CStr) -> bool {
        !self.symbol(name).is_null()
    }

    /// # Safety
    /// `F` is the type of the function with this name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> F {
        let symbol = self.symbol(name);
        assert!(!symbol.is_null(), "no {name:?}");
        // SAFETY: a function pointer, of the type that the caller says.
        unsafe { std::mem::transmute_copy(&symbol) }
    }
}
