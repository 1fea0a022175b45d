//! Names of kernels: what the compiler made of them, and what people read.

use cpp_demangle::{DemangleOptions, Symbol};
use kymograph_protos::{Recorder, StrId};

use super::intern::intern;

/// Longer names are shown as they are (as in Kineto): demangling them costs more than it
/// says.
const LONGEST: usize = 8192;

/// What a kernel is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// Without return type and parameters.
    pub(crate) short: StrId,
    /// In full; none if that is the same.
    pub(crate) full: StrId,
}

/// The names under which a kernel is shown.
pub(crate) fn describe(mangled: &[u8], recorder: &dyn Recorder) -> Name {
    let (short, full) = demangled(mangled);
    let text = |text: &str| intern(recorder, StrId::NONE, text.as_bytes());
    match (short, full) {
        (Some(short), Some(full)) if short != full => {
            Name { short: text(&short), full: text(&full) }
        }
        (Some(short), _) => Name { short: text(&short), full: StrId::NONE },
        _ => Name { short: intern(recorder, StrId::NONE, mangled), full: StrId::NONE },
    }
}

/// A C++ name without and with return type and parameters; none if it is not one.
fn demangled(mangled: &[u8]) -> (Option<String>, Option<String>) {
    if mangled.len() > LONGEST || !mangled.starts_with(b"_Z") {
        return (None, None);
    }
    let Ok(symbol) = Symbol::new(mangled) else {
        return (None, None);
    };
    let brief = DemangleOptions::new().no_params().no_return_type();
    let show = |options: &DemangleOptions| symbol.demangle_with_options(options).ok();
    (show(&brief).filter(|name| !name.is_empty()), show(&DemangleOptions::new()))
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
}
