//! A process of a recording cuts the control page short, or fills it with anything: `kymo`
//! ends as its command does, and says that it cannot count.

mod kymo;

use std::path::Path;
use std::process::Output;

/// Ten ranges, by a process that has ended before the damage is done.
const RANGES: &str = "import nvtx
for n in range(10):
    with nvtx.annotate(str(n)): pass";

/// Runs ranges, then `damage`, a script of the shell, under `kymo record`.
fn record(folder: &Path, options: &[&str], damage: &str) -> Output {
    let python = judge::venv_python();
    let script = format!("{} -c '{RANGES}'; {damage}; exit 7", python.display());
    let mut command = kymo::kymo();
    command.arg("record").args(options).args(["-o", "t.pftrace", "--", "sh", "-c", &script]);
    command.current_dir(folder).output().unwrap()
}

/// The command's own end, and the truth.
#[track_caller]
fn check(output: &Output, folder: &Path) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("damaged") && !said.contains("nothing was recorded"), "{said}");
    let trace = judge::Trace::open(folder.join("t.pftrace"));
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice"), 10, "{said}");
}

#[test]
fn cut_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    check(&record(folder.path(), &[], ": > $KYMOGRAPH_CONTROL"), folder.path());
    // While `kymo` reads it again and again.
    let options = ["--also", "also.pftrace"];
    let output = record(folder.path(), &options, ": > $KYMOGRAPH_CONTROL; sleep 0.5");
    check(&output, folder.path());
}

#[test]
fn filled_with_anything() {
    for byte in ["\\000", "\\377", "\\125"] {
        let folder = tempfile::tempdir().unwrap();
        let damage = format!(
            "head -c 65536 /dev/zero | tr '\\000' '{byte}' | dd of=$KYMOGRAPH_CONTROL \
             conv=notrunc status=none"
        );
        check(&record(folder.path(), &[], &damage), folder.path());
    }
}

/// What `kymo` cannot see to be wrong may make it say a wrong number, and nothing worse.
#[test]
fn a_field_that_is_wrong_does_no_more_than_that() {
    // Everything behind `owner`, and only the count of numbered files.
    for (offset, bytes, options) in
        [(24, 65_512, &[][..]), (116, 4, &["--flight", "10s"]), (116, 4, &["--rotate", "10m"])]
    {
        let folder = tempfile::tempdir().unwrap();
        let damage = format!(
            "head -c {bytes} /dev/zero | tr '\\000' '\\377' | dd of=$KYMOGRAPH_CONTROL bs=1 \
             seek={offset} conv=notrunc status=none"
        );
        let output = record(folder.path(), options, &damage);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert!(output.stderr.len() < 2 << 20, "{} bytes were said", output.stderr.len());
    }
}
