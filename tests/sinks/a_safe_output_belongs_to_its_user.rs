//! With SAFE nothing is written through a symbolic link or to a file that has other
//! names, and permissions are exactly those that were asked for.

use kymograph::config::Config;
use kymograph::sink;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn open(path: &Path, more: &str) -> Result<Box<dyn sink::Sink>, kymograph::Error> {
    let mut config = Config::default();
    config.set("OUTPUT", path).unwrap();
    assert_eq!(config.apply_text(more), []);
    sink::open(&config)
}

#[test]
fn links_are_refused_and_what_they_name_is_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("precious"), "precious").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    std::fs::hard_link(at("precious"), at("name")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for name in ["link", "name", "dangling"] {
        let Err(error) = open(&at(name), "SAFE=1") else {
            panic!("{name} was opened");
        };
        let text = error.to_string();
        assert!(text.contains("SAFE") && text.lines().count() == 1, "{text}");
    }
    assert_eq!(std::fs::read(at("precious")).unwrap(), b"precious");
    assert!(!at("nowhere").exists());
    // Without SAFE links are followed, as by every program.
    open(&at("dangling"), "").unwrap();
    assert!(at("nowhere").exists());
}

#[test]
fn a_device_or_pipe_is_not_safe() {
    assert!(open(Path::new("/dev/null"), "SAFE=1").is_err());
    assert!(open(Path::new("/dev/null"), "").is_ok());
}

#[test]
fn the_mode_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mode = || path.metadata().unwrap().permissions().mode() & 0o7777;
    for (text, expected) in
        [("MODE=0600", 0o600), ("MODE=0666", 0o666), ("MODE=0640\nSAFE=1", 0o640)]
    {
        open(&path, text).unwrap();
        assert_eq!(mode(), expected, "{text}");
    }
}

#[test]
fn a_file_that_is_being_recorded_into_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut first = open(&path, "").unwrap();
    first.write(b"first").unwrap();
    let Err(error) = open(&path, "") else {
        panic!("two recordings in one file");
    };
    assert!(error.to_string().contains("another program is recording"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    drop(first);
    open(&path, "").unwrap();
}
