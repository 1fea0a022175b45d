//! Vendor libraries, found at run time.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use libloading::os::unix;

/// A loaded library. It is never unloaded: its code may run as long as the process does.
#[derive(Clone, Copy)]
pub(crate) struct Library(NonNull<c_void>);

// SAFETY: a handle of the loader, which may be used from any thread and is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The file that is mapped and called so, or so in another version (`libx.so.1` and
/// `libx.so.1.2`).
fn mapped(name: &[u8]) -> Option<CString> {
    struct Search<'a> {
        stem: &'a [u8],
        found: Option<CString>,
    }
    extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader passes a valid info, whose name is null or a C string, and what
        // was given to `dl_iterate_phdr`.
        let (path, search) = unsafe { ((*info).dlpi_name, &mut *search.cast::<Search<'_>>()) };
        if !path.is_null() {
            // SAFETY: as above.
            let path = unsafe { CStr::from_ptr(path) }.to_bytes();
            let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            if file.starts_with(search.stem) {
                search.found = CString::new(path).ok();
            }
        }
        search.found.is_some().into()
    }
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let end = file.windows(3).position(|part| part == b".so").map_or(file.len(), |at| at + 3);
    let mut search = Search { stem: &file[..end], found: None };
    // SAFETY: `look` is of the right type, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.path()).finish()
    }
}

impl Library {
    /// The library of this name if the process has it already. Makes no system call if it has
    /// not: that may be asked at the end of a program that has forbidden itself all of them.
    pub(crate) fn present(name: &CStr) -> Option<Library> {
        mapped(name.to_bytes())?;
        Library::open(name, unix::RTLD_LAZY | libc::RTLD_NOLOAD)
    }

    /// As [`Library::present`], in whichever version it is (`libx.so.1` for `libx.so`).
    pub(crate) fn present_in_any_version(name: &CStr) -> Option<Library> {
        Library::open(&mapped(name.to_bytes())?, unix::RTLD_LAZY | libc::RTLD_NOLOAD)
    }

    /// Loads the library of this name, from where the loader looks for libraries.
    pub(crate) fn load(name: &CStr) -> Option<Library> {
        // Its symbols stay apart: a program that asks for them by name
        // shall find what it would find without us.
        Library::open(name, unix::RTLD_NOW | unix::RTLD_LOCAL)
    }

    /// Loads the library in this file.
    pub(crate) fn load_path(path: &Path) -> Option<Library> {
        Library::load(&CString::new(path.as_os_str().as_bytes()).ok()?)
    }

    fn open(name: &CStr, flags: libc::c_int) -> Option<Library> {
        // SAFETY: the constructors of a vendor's library are what the program that uses this
        // vendor's devices runs as well.
        let library =
            unsafe { unix::Library::open(Some(OsStr::from_bytes(name.to_bytes())), flags) }.ok()?;
        NonNull::new(library.into_raw()).map(Library)
    }

    /// The address of a symbol.
    pub(crate) fn symbol(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle of the loader's, which is not closed here either; the caller knows of
        // what type the symbol is.
        unsafe {
            let library = ManuallyDrop::new(unix::Library::from_raw(self.0.as_ptr()));
            let symbol = library.get_singlethreaded::<*mut c_void>(name).ok()?;
            NonNull::new(symbol.as_raw_ptr())
        }
    }

    /// Whether this text is among what the library was loaded with: names of functions that it
    /// calls, or looks up.
    pub(crate) fn mentions(self, text: &CStr) -> bool {
        let Some(path) = self.path() else { return false };
        let mut search = Search { path: &path, text, found: false };
        // SAFETY: calls back with the search, within the call.
        unsafe { libc::dl_iterate_phdr(Some(search_object), (&raw mut search).cast()) };
        search.found
    }

    /// The file it was loaded from.
    pub(crate) fn path(self) -> Option<PathBuf> {
        let mut map: *mut LinkMap = std::ptr::null_mut();
        // SAFETY: RTLD_DI_LINKMAP (dlinfo(3)) stores a pointer to the handle's link map.
        let found = unsafe {
            libc::dlinfo(self.0.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast::<c_void>())
        };
        if found != 0 || map.is_null() {
            return None;
        }
        // SAFETY: the link map lives as long as the library, and `name` is a C string.
        let name = unsafe { CStr::from_ptr((*map).name) };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        path.is_absolute().then(|| path.to_owned())
    }
}

/// A text that is looked for in a library.
struct Search<'a> {
    path: &'a Path,
    text: &'a CStr,
    found: bool,
}

/// # Safety
/// As dl_iterate_phdr(3) calls it, with a [`Search`].
unsafe extern "C" fn search_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> libc::c_int {
    // SAFETY: the caller's promise; the name is a C string, and the headers are as many.
    let (info, search, headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info, &mut *search.cast::<Search<'_>>(), headers)
    };
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    if Path::new(OsStr::from_bytes(name.to_bytes())) != search.path {
        return 0;
    }
    let text = search.text.to_bytes_with_nul();
    // What is written to may change meanwhile, and names are not there.
    let constant = |header: &&libc::Elf64_Phdr| {
        let wanted = libc::PF_R;
        header.p_type == libc::PT_LOAD && header.p_flags & (libc::PF_W | libc::PF_R) == wanted
    };
    search.found = headers.iter().filter(constant).any(|header| {
        let start = std::ptr::without_provenance((info.dlpi_addr + header.p_vaddr) as usize);
        // SAFETY: a part of the library that is loaded, readable and not written to.
        !unsafe { libc::memmem(start, header.p_filesz as usize, text.as_ptr().cast(), text.len()) }
            .is_null()
    });
    1
}

/// The public beginning of `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const libc::c_char,
}

/// Declares a table of functions of a library. `required` ones make up the table or there
/// is none; `optional` ones appeared in later versions.
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident
        required { $($name:ident = $symbol:literal : fn($($arg:ty),* $(,)?) -> $out:ty;)* }
        optional { $($oname:ident = $osymbol:literal : fn($($oarg:ty),* $(,)?) -> $oout:ty;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $out,)*
            $(pub(crate) $oname: Option<unsafe extern "C" fn($($oarg),*) -> $oout>,)*
        }

        impl $table {
            /// Finds the functions; the name of the first that is missing, if one is.
            #[allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]
            pub(crate) fn find(
                library: crate::load::Library,
            ) -> std::result::Result<$table, &'static std::ffi::CStr> {
                Ok($table {
                    $(
                        // SAFETY: the vendor's header declares the function of this name
                        // with this type.
                        $name: unsafe {
                            std::mem::transmute(library.symbol($symbol).ok_or($symbol)?.as_ptr())
                        },
                    )*
                    $(
                        $oname: library.symbol($osymbol).map(|found| {
                            // SAFETY: as above.
                            unsafe { std::mem::transmute(found.as_ptr()) }
                        }),
                    )*
                })
            }
        }
    };
}
pub(crate) use functions;
