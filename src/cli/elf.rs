//! Can this command be recorded? Reads the head of its file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a file is to the loader that injects us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Program {
    /// Loads shared libraries by the C library that `kymo` uses: recordable.
    Dynamic,
    /// A shared library.
    Library,
    /// Loads nothing.
    Static,
    /// Loads libraries by another C library, for which ours is none.
    OtherLibc,
    /// For another processor, or 32 bits on this one.
    Foreign,
    /// Begins with `#!`: this is run instead.
    Script(PathBuf),
    /// No ELF file: the kernel or the shell may know.
    Unknown,
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = 0;

/// Why a program will not be recorded itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Obstacle {
    /// The end of a sentence that begins with the program's name.
    pub(super) why: &'static str,
}

impl Obstacle {
    fn because(why: &'static str) -> Option<Obstacle> {
        Some(Obstacle { why })
    }
}

/// What keeps the program at `path` from being recorded; `None` if nothing does, or if
/// there is no telling.
pub(super) fn obstacle(path: &Path) -> Option<Obstacle> {
    let mut path = path.to_owned();
    // The kernel follows scripts that are run by scripts four levels deep.
    for _ in 0..5 {
        if let Some(why) = privileged(&path) {
            return Obstacle::because(why);
        }
        path = match inspect(&path).ok()? {
            Program::Script(interpreter) => interpreter,
            Program::Static => {
                return Obstacle::because("is statically linked, which nothing can be loaded into");
            }
            Program::Foreign => {
                return Obstacle::because("is for another processor architecture than kymo");
            }
            // What LD_PRELOAD says is nothing to its loader: see `library::preloadable`.
            Program::OtherLibc => {
                return Obstacle::because("uses another C library than kymo was built for");
            }
            Program::Dynamic | Program::Library | Program::Unknown => return None,
        }
    }
    None
}

/// A program that gains rights ignores what its caller wants to have loaded.
fn privileged(path: &Path) -> Option<&'static str> {
    let metadata = path.metadata().ok()?;
    // SAFETY: no arguments, cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let setuid = metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user;
    // Without the group's x bit, setgid means something else.
    let setgid = metadata.mode() & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
        && metadata.gid() != group;
    if setuid || setgid {
        return Some("changes its user or group (setuid, setgid), and then loads nothing of ours");
    }
    (user != 0 && has_capabilities(path))
        .then_some("has file capabilities, and then loads nothing of ours")
}

fn has_capabilities(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: two C strings that outlive the call; a null buffer of size 0 only asks for
    // the size.
    let size = unsafe {
        let attribute = c"security.capability".as_ptr();
        libc::getxattr(name.as_ptr(), attribute, std::ptr::null_mut(), 0)
    };
    size > 0
}

/// What kind of program `path` is.
pub(super) fn inspect(path: &Path) -> io::Result<Program> {
    let file = File::open(path)?;
    let loader = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("ld-linux") || name.starts_with("ld.so"));
    let program = classify(|offset, buffer| {
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => filled += n,
            }
        }
        filled
    });
    Ok(match program {
        // The loader itself, run as a command, has none; it heeds LD_PRELOAD.
        Program::Static | Program::Library if loader => Program::Dynamic,
        program => program,
    })
}

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const ET_DYN: u16 = 3;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_PIE: u64 = 0x0800_0000;

/// As [`inspect`], from anything that can be read at an offset (into a buffer; returns
/// how much).
fn classify(read: impl Fn(u64, &mut [u8]) -> usize) -> Program {
    let mut head = [0; 256];
    let length = read(0, &mut head);
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(line);
    }
    if !head.starts_with(b"\x7fELF") || length < 64 {
        return Program::Unknown;
    }
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    // 64 bits, little-endian, this machine.
    if head[4] != 2 || head[5] != 1 || u16_at(18) != MACHINE {
        return Program::Foreign;
    }
    let phoff = u64_at(head, 32);
    let (entry, entries) = (u64::from(u16_at(54)), u64::from(u16_at(56)));
    let (mut dynamic, mut interpreter) = (None, None);
    for i in 0..entries {
        let mut header = [0; 56];
        let at = phoff.saturating_add(i * entry);
        if read(at, &mut header) < header.len() {
            break;
        }
        match u32::from_le_bytes([header[0], header[1], header[2], header[3]]) {
            PT_DYNAMIC => dynamic = Some((u64_at(&header, 8), u64_at(&header, 32))),
            PT_INTERP => {
                let mut name = vec![0; (u64_at(&header, 32) as usize).min(4096)];
                let n = read(u64_at(&header, 8), &mut name);
                name.truncate(n);
                interpreter = Some(name);
            }
            _ => {}
        }
    }
    match interpreter {
        Some(name) if name.windows(7).any(|w| w == b"ld-musl") == cfg!(target_env = "musl") => {
            Program::Dynamic
        }
        Some(_) => Program::OtherLibc,
        None => match dynamic {
            // Some linkers give a library an entry, and old ones do not flag a program.
            Some((at, size))
                if u16_at(16) == ET_DYN
                    && (u64_at(head, 24) == 0 || !says_pie(&read, at, size)) =>
            {
                Program::Library
            }
            _ => Program::Static,
        },
    }
}

/// Whether the dynamic section says that this is a program, though it may lie anywhere.
fn says_pie(read: impl Fn(u64, &mut [u8]) -> usize, at: u64, size: u64) -> bool {
    let mut section = vec![0; size.min(64 << 10) as usize];
    let filled = read(at, &mut section);
    section[..filled]
        .chunks_exact(16)
        .any(|entry| u64_at(entry, 0) == DT_FLAGS_1 && u64_at(entry, 8) & DF_1_PIE != 0)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rfold(0, |n, b| n << 8 | u64::from(*b))
}

/// The interpreter that the line after `#!` names.
fn script(line: &[u8]) -> Program {
    use std::os::unix::ffi::OsStrExt;
    let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
    let mut words = line.split(|b| b" \t".contains(b)).filter(|w| !w.is_empty());
    match words.next() {
        Some(word) => Program::Script(std::ffi::OsStr::from_bytes(word).into()),
        None => Program::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Program {
        classify(|offset, buffer| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            n
        })
    }

    /// An ELF file with the program headers `kinds`; all of them describe `content`.
    fn elf(
        class: u8,
        machine: u16,
        kind: u16,
        entry: u64,
        kinds: &[u32],
        content: impl AsRef<[u8]>,
    ) -> Vec<u8> {
        let content = content.as_ref();
        let mut file = vec![0; 64];
        file[..4].copy_from_slice(b"\x7fELF");
        file[4] = class;
        file[5] = 1;
        file[16..18].copy_from_slice(&kind.to_le_bytes());
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[24..32].copy_from_slice(&entry.to_le_bytes());
        file[32] = 64;
        file[54] = 56;
        file[56] = kinds.len() as u8;
        let text = 64 + 56 * kinds.len();
        for kind in kinds {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&(text as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            file.extend_from_slice(&header);
        }
        file.extend_from_slice(content);
        file
    }

    #[test]
    fn programs_are_told_apart() {
        let glibc = "/lib64/ld-linux-x86-64.so.2\0";
        let musl = "/lib/ld-musl-x86_64.so.1\0";
        assert_eq!(of(&elf(2, MACHINE, 3, 9, &[3, 2, 1], glibc)), Program::Dynamic);
        assert_eq!(of(&elf(2, MACHINE, 3, 9, &[3, 2, 1], musl)), Program::OtherLibc);
        assert_eq!(of(&elf(2, MACHINE, 2, 9, &[1], "")), Program::Static);
        // static-pie: dynamic section, entry point, flag, no interpreter
        let pie = [DT_FLAGS_1.to_le_bytes(), DF_1_PIE.to_le_bytes()].concat();
        assert_eq!(of(&elf(2, MACHINE, 3, 9, &[2, 1], &pie)), Program::Static);
        // Libraries: mold gives them an entry, other linkers do not.
        assert_eq!(of(&elf(2, MACHINE, 3, 9, &[2, 1], [0; 16])), Program::Library);
        assert_eq!(of(&elf(2, MACHINE, 3, 0, &[2, 1], "")), Program::Library);
        assert_eq!(of(&elf(1, MACHINE, 2, 9, &[3, 1], glibc)), Program::Foreign);
        assert_eq!(of(&elf(2, MACHINE + 1, 2, 9, &[3, 1], glibc)), Program::Foreign);
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let script = |path: &str| Program::Script(path.into());
        assert_eq!(of(b"#! /usr/bin/env python3\nx"), script("/usr/bin/env"));
        assert_eq!(of(b"#!/bin/sh"), script("/bin/sh"));
        assert_eq!(of(b"#!\n"), Program::Unknown);
        assert_eq!(of(b"echo"), Program::Unknown);
        assert_eq!(of(b""), Program::Unknown);
    }

    #[test]
    fn a_cut_or_hostile_file_is_no_reason_to_panic() {
        let whole = elf(2, MACHINE, 3, 9, &[3, 2, 1], "/lib64/ld-linux-x86-64.so.2\0");
        for length in 0..whole.len() {
            of(&whole[..length]);
        }
        for at in 0..whole.len() {
            let mut bent = whole.clone();
            bent[at] = 0xff;
            of(&bent);
        }
    }

    #[test]
    fn this_program_is_dynamic() {
        let me = std::env::current_exe().unwrap();
        assert_eq!(inspect(&me).unwrap(), Program::Dynamic);
        assert_eq!(obstacle(&me), None);
    }
}
