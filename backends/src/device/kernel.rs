//! Names of kernels: what the compiler made of them, and what people read.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use cpp_demangle::{DemangleOptions, Symbol};
use kymograph_protos::{ColdRecorder, StrId};

use crate::load::Library;

/// Longer names are shown as they are (as in Kineto): demangling them costs more than it
/// says.
const MAX_MANGLED_BYTES: usize = 8192;

/// What a kernel is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Name {
    /// Without return type and parameters.
    pub(crate) short: StrId,
    /// In full; none if that is the same.
    pub(crate) full: StrId,
    /// As the compiler calls it; none if that is the same.
    pub(crate) symbol: StrId,
}

/// The names under which a kernel is shown.
pub(crate) fn describe(mangled: &[u8], recorder: &dyn ColdRecorder) -> Name {
    let (short, full) = demangled(mangled);
    let text = |text: &str| recorder.intern_or_wait(StrId::NONE, text.as_bytes());
    let itself = || recorder.intern_or_wait(StrId::NONE, mangled);
    match (short, full) {
        (Some(short), full) => {
            let full = full.filter(|full| *full != short);
            let full = full.map_or(StrId::NONE, |full| text(&full));
            Name { short: text(&short), full, symbol: itself() }
        }
        (None, _) => Name { short: itself(), ..Name::default() },
    }
}

/// A C++ name without and with return type and parameters; none if it is not one.
fn demangled(mangled: &[u8]) -> (Option<String>, Option<String>) {
    if mangled.len() > MAX_MANGLED_BYTES || !mangled.starts_with(b"_Z") {
        return (None, None);
    }
    let Ok(symbol) = Symbol::new(mangled) else {
        return (None, None);
    };
    let brief = DemangleOptions::new().no_params().no_return_type();
    let show = |options: &DemangleOptions| symbol.demangle_with_options(options).ok();
    let short = show(&brief).filter(|name| !name.is_empty());
    (short, libstdcxx(mangled).or_else(|| show(&DemangleOptions::new())))
}

/// The name as the program's own libstdc++ writes it, if it has one: letter by letter what
/// Kineto and other tools show. (They differ in `4` and `(unsigned int)4`.)
fn libstdcxx(mangled: &[u8]) -> Option<String> {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let function = Library::present(c"libstdc++.so.6")?.symbol(c"__cxa_demangle")?;
    // SAFETY: the C++ ABI declares it so (abi::__cxa_demangle).
    let demangle =
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Demangle>(function.as_ptr()) };
    let mangled = CString::new(mangled).ok()?;
    let mut status = 0;
    // SAFETY: a C string; null asks for memory of malloc's, which is freed after its copy
    // was made.
    unsafe {
        let name = demangle(mangled.as_ptr(), ptr::null_mut(), ptr::null_mut(), &mut status);
        if name.is_null() {
            return None;
        }
        let text = CStr::from_ptr(name).to_str().map(str::to_owned);
        libc::free(name.cast());
        text.ok().filter(|_| status == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_lose_return_type_and_parameters() {
        let (short, full) = demangled(b"_Z9vectorAddPKfS0_Pfi");
        assert_eq!(short.as_deref(), Some("vectorAdd"));
        assert_eq!(full.as_deref(), Some("vectorAdd(float const*, float const*, float*, int)"));
        let (short, full) = demangled(b"_ZN2at6native4fillIfLi4EEEvPT_i");
        assert_eq!(short.as_deref(), Some("at::native::fill<float, 4>"));
        assert_eq!(full.as_deref(), Some("void at::native::fill<float, 4>(float*, int)"));
        assert_eq!(demangled(b"triton_poi_fused_add_0"), (None, None));
        assert_eq!(demangled(b"_Znonsense"), (None, None));
    }

    #[test]
    fn a_program_with_libstdcxx_is_shown_its_own_spelling() {
        let mangled = b"_ZN2at6native4fillIfLj4EEEvPT_i";
        match Library::load(c"libstdc++.so.6") {
            Some(_) => {
                let full = demangled(mangled).1;
                assert_eq!(full.as_deref(), Some("void at::native::fill<float, 4u>(float*, int)"));
            }
            None => println!("not checked: there is no libstdc++.so.6 here"),
        }
    }
}
