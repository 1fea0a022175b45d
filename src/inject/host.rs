//! What kind of program we were loaded into.
//!
//! A static program may load libraries all the same: `dlopen` of a static C library brings a
//! second C library into the process, whose threads and thread-locals the first knows nothing
//! of. Nearly nothing works there, so nothing is tried. This file looks at what the kernel has
//! told the process, for which neither is needed.

/// Whether the program is static, and nothing but this function may be called in it.
pub(super) fn is_static() -> bool {
    // SAFETY: reads the auxiliary vector; both entries are there in every process.
    let (headers, count) =
        unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM)) };
    let headers = std::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(headers as usize);
    if headers.is_null() {
        return false;
    }
    // SAFETY: where the program's headers lie for as long as the process lives, and how many
    // there are. A dynamic one names its loader there.
    let mut headers = (0..count as usize).map(|i| unsafe { headers.add(i).read() });
    headers.all(|header| header.p_type != libc::PT_INTERP)
}

/// Whether the program has memory left for a set-up, whose allocations may not fail.
pub(super) fn has_memory() -> bool {
    const SETUP: usize = 256 << 10;
    // SAFETY: nothing is read or written there. The compiler may leave out what is not looked at.
    unsafe {
        let memory = std::hint::black_box(libc::malloc(SETUP));
        libc::free(memory);
        !memory.is_null()
    }
}

/// Has the loader know us by the path by which annotation libraries load us, which is not the one
/// by which we were preloaded. It finds us by that without opening a file: the program may have no
/// descriptor left when it annotates for the first time, may have changed its root, or forbidden
/// itself to open any.
pub(super) fn answer_to_our_path() {
    // SAFETY: no other thread exists that could change the environment. Nothing is loaded, and
    // what is there is kept, as it would be anyway. An error is not the program's to find.
    unsafe {
        let path = libc::getenv(c"NVTX_INJECTION64_PATH".as_ptr());
        if !path.is_null() && libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD).is_null() {
            libc::dlerror();
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_is_dynamic() {
        assert!(!super::is_static());
    }
}
