//! Each line of `kymo doctor` is a mark, a name and a finding; what is not good says what
//! to do. The JSON says the same.

use harness::kymo;

#[test]
fn kymo_doctor_tells_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = kymo::kymo();
        let output = command.arg("doctor").args(args).current_dir(folder.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let text = run(&[]);
    for line in text.lines() {
        assert!(line.starts_with(['✓', '✗', '–']), "{line}");
        assert!(line.starts_with('✓') || line.contains("; "), "{line}");
    }
    assert!(text.contains("✓ library"), "{text}");
    assert!(text.contains("✓ output folder"), "{text}");

    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let checks = json.as_array().unwrap();
    assert_eq!(checks.len(), text.lines().count());
    assert!(checks.iter().any(|c| c["check"] == "library" && c["state"] == "good"));
    // It leaves nothing in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_library_that_cannot_be_loaded_is_a_finding() {
    let mut command = kymo::kymo();
    command.env("KYMOGRAPH_LIBRARY", "/nonexistent/libkymograph.so");
    let output = command.arg("doctor").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("✗ library"), "{text}");
}

/// Beside `kymo`, and below it where cargo leaves it that was asked for the program alone.
#[test]
fn the_library_is_found_by_the_place_of_kymo() {
    let places = [("", "bin"), ("../lib", "lib"), ("deps", "bin/deps")];
    for (place, said) in places {
        // Linked, since a program that was just written may be busy.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(bin.join(place)).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_kymo"), bin.join("kymo")).unwrap();
        std::fs::hard_link(kymo::library(), bin.join(place).join("libkymograph.so")).unwrap();
        let mut command = std::process::Command::new(bin.join("kymo"));
        let output = command.arg("doctor").env_remove("KYMOGRAPH_LIBRARY").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("✓ library"), "{place}: {text}");
        assert!(text.contains(&format!("{said}/libkymograph.so")), "{place}: {text}");
    }
}
