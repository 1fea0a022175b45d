//! Puts `libkymograph.so` into the command that injects it.
//!
//! Cargo links the library of a package, with all of its crate types, before it compiles the
//! package's commands, and tells the compiler where it is: `--extern kymograph=…/libkymograph.rlib`.
//! The shared library lies beside it, under the same name. A build script could not do this: it
//! runs before either is there. A macro can, since it runs inside that call of the compiler.

use proc_macro::{Literal, TokenStream};
use std::path::{Path, PathBuf};

/// How hard zstd tries: a sixth smaller than deflate at its best.
const LEVEL: i32 = 19;

/// `Option<(&'static [u8], u32, u64)>`: the library compressed with zstd, and the CRC-32 and the
/// length of what unpacks from it. `None` where there is no library: while the compiler only checks,
/// and for targets that have no shared libraries.
#[proc_macro]
pub fn library(input: TokenStream) -> TokenStream {
    if !input.is_empty() {
        return error("library!() takes no arguments");
    }
    let Some(path) = beside_the_rlib(std::env::args()) else {
        return "::core::option::Option::None".parse().unwrap_or_default();
    };
    match packed(&path) {
        Ok((packed, crc, length)) => expansion(&path, &packed, crc, length),
        Err(why) => error(&format!("cannot read {}: {why}", path.display())),
    }
}

/// The shared library beside the `rlib` that the compiler was told to link.
fn beside_the_rlib(words: impl Iterator<Item = String>) -> Option<PathBuf> {
    let mut words = words.flat_map(|word| match word.strip_prefix('@') {
        // Too many arguments for a command line come in a file, a line each.
        Some(file) => std::fs::read_to_string(file)
            .map_or(Vec::new(), |text| text.lines().map(str::to_owned).collect()),
        None => vec![word],
    });
    let path = words.find_map(|word| {
        let path = word.strip_prefix("kymograph=")?;
        path.ends_with(".rlib").then(|| Path::new(path).with_extension("so"))
    })?;
    path.exists().then_some(path)
}

fn packed(path: &Path) -> std::io::Result<(Vec<u8>, u32, u64)> {
    let library = std::fs::read(path)?;
    let packed = zstd::bulk::compress(&library, LEVEL)?;
    Ok((packed, crc32fast::hash(&library), library.len() as u64))
}

/// The bytes are a literal; the path is named once more, so that the compiler runs again when the
/// library has changed.
fn expansion(path: &Path, packed: &[u8], crc: u32, length: u64) -> TokenStream {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let tracked = Literal::string(&path.to_string_lossy());
    let bytes = Literal::byte_string(packed);
    let text = format!(
        "{{ const _: &[u8] = ::core::include_bytes!({tracked}); \
         ::core::option::Option::Some(({bytes} as &'static [u8], {crc}_u32, {length}_u64)) }}"
    );
    text.parse().unwrap_or_else(|_| error("the library's bytes are no literal"))
}

fn error(why: &str) -> TokenStream {
    format!("::core::compile_error!({why:?})").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_lies_beside_what_the_compiler_links() {
        let folder = std::env::temp_dir().join(format!("kymograph-embed-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let library = folder.join("libkymograph-0a.so");
        std::fs::write(&library, b"library").unwrap();
        let linked = format!("kymograph={}", folder.join("libkymograph-0a.rlib").display());
        let checked = format!("kymograph={}", folder.join("libkymograph-0a.rmeta").display());
        let other = format!("kymograph={}", folder.join("libkymograph-0b.rlib").display());
        let file = folder.join("arguments");
        std::fs::write(&file, format!("--extern\n{linked}\n")).unwrap();
        let find = |word: &str| {
            beside_the_rlib(["rustc", "--extern", word].map(str::to_owned).into_iter())
        };
        assert_eq!(find(&linked).as_deref(), Some(&*library));
        assert_eq!(find(&format!("@{}", file.display())).as_deref(), Some(&*library));
        assert_eq!((find(&checked), find(&other), find("clap=x.rlib")), (None, None, None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
