//! The functions of HIP that scripts call: those that CUDA's scripts call, by HIP's names,
//! and some of RCCL and ROCTX.

use std::ffi::{CStr, CString};

use crate::tables::{LIBRARIES, Library, functions};

/// What `call` in a script stands for.
pub(crate) struct Function {
    pub(crate) library: Library,
    pub(crate) name: &'static CStr,
    /// After a colon: a message, a size.
    pub(crate) word: &'static CStr,
}

/// `hipMalloc:4096`, `roctxRangePushA:step`, `ncclAllReduce`; CUDA's names stand for HIP's.
pub(crate) fn other(text: &str) -> Option<&'static Function> {
    let (name, word) = text.split_once(':').unwrap_or((text, ""));
    let name = name.strip_prefix("cuda").map_or(name.to_owned(), |rest| format!("hip{rest}"));
    let named = |library: Library| {
        let name = functions(library).iter().find(|f| f.to_bytes() == name.as_bytes())?;
        Some((library, *name))
    };
    let (library, name) = LIBRARIES.into_iter().find_map(named)?;
    let word = Box::leak(CString::new(word).ok()?.into_boxed_c_str());
    Some(Box::leak(Box::new(Function { library, name, word })))
}
