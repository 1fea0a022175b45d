//! `kymo doctor` says whether a fleet's daemon can ask for traces, and does not speak to it.

use dynolog::Daemon;
use harness::{dynolog, kymo};

/// The line about the daemon.
fn said(settings: &[(&str, &str)]) -> String {
    let mut command = kymo::kymo();
    for name in ["KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR"] {
        command.env_remove(name);
    }
    let output = command.arg("doctor").envs(settings.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line[3..].trim_start().starts_with("daemon "));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn with_an_abstract_name_and_in_a_folder() {
    let name = format!("dynolog.test.{}", std::process::id());
    let settings = [("KYMOGRAPH_DAEMON", &*name)];
    let line = said(&settings);
    assert!(line.starts_with('✗') && line.contains("--enable_ipc_monitor"), "{line}");
    let daemon = Daemon::named(&name);
    let line = said(&settings);
    assert!(line.starts_with('✓') && line.contains(&format!("@{name} can be asked")), "{line}");
    assert_eq!(daemon.fault(), None);

    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::in_folder(folder.path());
    let path = folder.path().to_str().unwrap();
    let there = [("KINETO_USE_DAEMON", "1"), ("KINETO_IPC_SOCKET_DIR", path)];
    let line = said(&there);
    assert!(line.starts_with('✓') && line.contains(path), "{line}");
    // Spelled as the daemon does not spell it: it would abort.
    let slash = format!("{path}/");
    let line = said(&[there[0], ("KINETO_IPC_SOCKET_DIR", &slash)]);
    assert!(line.starts_with('✗') && line.contains("the same path for both"), "{line}");
    assert_eq!(daemon.fault(), None);
}
