//! Static programs, privileged programs and programs for other machines run as ever, and
//! one line says why they are not recorded.

use harness::{install, kymo};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A static x86-64 program that does nothing but exit with code 5.
fn static_program() -> Vec<u8> {
    let code = [
        0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
        0xbf, 5, 0, 0, 0, // mov edi, 5
        0x0f, 0x05, // syscall
    ];
    let mut file = vec![0; 120];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16] = 2; // ET_EXEC
    file[18] = 62; // x86-64
    file[20] = 1;
    file[24..32].copy_from_slice(&0x40_0078_u64.to_le_bytes());
    file[32] = 64; // program headers
    file[52] = 64;
    file[54] = 56;
    file[56] = 1;
    file[64] = 1; // PT_LOAD
    file[68] = 5; // r-x
    file[80..88].copy_from_slice(&0x40_0000_u64.to_le_bytes());
    file[88..96].copy_from_slice(&0x40_0000_u64.to_le_bytes());
    let size = (120 + code.len()) as u64;
    file[96..104].copy_from_slice(&size.to_le_bytes());
    file[104..112].copy_from_slice(&size.to_le_bytes());
    file[112..120].copy_from_slice(&0x1000_u64.to_le_bytes());
    file.extend_from_slice(&code);
    file
}

/// The exit code and the first line on stderr.
fn record(program: &Path) -> (Option<i32>, String) {
    let mut command = kymo::kymo();
    let trace = program.with_extension("pftrace");
    let output = command.args(["record", "-o"]).arg(trace).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text.lines().next().unwrap_or_default().to_owned())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("static");
    install::write(&program, static_program());
    let (code, line) = record(&program);
    assert_eq!(code, Some(5), "{line}");
    assert!(line.contains("is statically linked"), "{line}");
    // A script that it interprets is the same case.
    let script = folder.path().join("script");
    install::write(&script, format!("#!{}\n", program.display()).as_bytes());
    let (code, line) = record(&script);
    assert_eq!(code, Some(5), "{line}");
    assert!(line.contains("is statically linked"), "{line}");
}

#[test]
fn a_program_of_another_user_with_setuid() {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: cannot make a file of another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("setuid");
    install::copy(Path::new("/bin/true"), &program);
    std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let (code, line) = record(&program);
    assert_eq!(code, Some(0), "{line}");
    assert!(line.contains("setuid"), "{line}");
}

#[test]
fn a_program_that_can_be_injected_is_not_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("true");
    install::copy(Path::new("/bin/true"), &program);
    let (code, line) = record(&program);
    assert_eq!(code, Some(0));
    assert!(line.contains("nothing was recorded"), "{line}");
}
