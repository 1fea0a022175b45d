//! Libraries that have wrappers of a vendor's functions in them, which load the vendor's
//! library on their first call: a recording changes nothing of what they do, whether that
//! library is there or not.

use harness::{fakes, nvidia};
use std::path::{Path, PathBuf};
use std::process::Command;

use nvidia::{Recorded, record_on};

/// A folder with the host program, a wrapper, and the vendor's library if there is one.
struct Place {
    folder: tempfile::TempDir,
    wrapper: &'static str,
}

impl Place {
    fn with(wrapper: &'static str, libraries: &[(&str, &str)]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder, wrapper };
        place.compile("host.c", "host", &["-ldl"]);
        place.compile(&format!("{wrapper}.c"), "libwrapper.so", &["-shared", "-fPIC"]);
        for (fake, name) in libraries {
            std::fs::copy(fakes::example(fake), place.path(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, source: &str, output: &str, options: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrappers").join(source);
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror"]).arg(source).arg("-o").arg(self.path(output));
        let output = cc.args(options).output().expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn prepare(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command.env_remove("HABANA_PROFILE");
    }

    /// What the program prints, and its status, without a recording.
    fn alone(&self, script: &str) -> (String, Option<i32>) {
        let mut command = Command::new(self.path("host"));
        self.prepare(&mut command);
        let output = command.arg(self.path("libwrapper.so")).arg(script).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    }

    /// The same of a recording.
    fn recorded(&self, script: &str) -> Recorded {
        let prepare = |command: &mut Command| self.prepare(command);
        record_on("cuda", prepare, &self.path("host"), &self.path("libwrapper.so"), &[script])
    }

    #[track_caller]
    fn is_unchanged(&self, script: &str, status: i32) -> Recorded {
        let (printed, alone) = self.alone(script);
        let recorded = self.recorded(script);
        assert_eq!(recorded.printed(), printed, "{}: what it prints", self.wrapper);
        assert_eq!((recorded.output.status.code(), alone), (Some(status), Some(status)));
        recorded.trace.assert_clean();
        recorded
    }
}

const SCRIPT: &str = "kernel gemm dur=20us\nkernel relu dur=5us\nsync\n";

#[test]
fn synapse_behind_a_wrapper() {
    let place = Place::with("synapse", &[("libfake_libsynapse.so", "libSynapse.so")]);
    let recorded = place.is_unchanged(SCRIPT, 0);
    assert!(recorded.printed().starts_with("wrapped\nsynInitialize 0\n"));
    recorded.ended(0);
    assert_eq!(recorded.number("hpu", "kernels"), 2, "{:#?}", recorded.metadata);
}

#[test]
fn a_wrapper_says_itself_that_there_is_no_synapse() {
    let recorded = Place::with("synapse", &[]).is_unchanged(SCRIPT, 9);
    assert_eq!(recorded.printed(), "wrapped\nno Synapse\n");
}

#[test]
fn level_zero_behind_a_static_loader() {
    let libraries =
        [("libfake_libze.so", "libze_loader.so.1"), ("libfake_libpti.so", "libpti_view.so.1")];
    let recorded = Place::with("level_zero", &libraries).is_unchanged(SCRIPT, 0);
    assert!(recorded.printed().starts_with("wrapped\nzeInit 0\nzeInitDrivers 0\n"));
    recorded.ended(0);
    assert_eq!(recorded.number("xpu", "kernels"), 2, "{:#?}", recorded.metadata);
}

#[test]
fn a_static_loader_says_itself_that_there_is_no_level_zero() {
    let recorded = Place::with("level_zero", &[]).is_unchanged(SCRIPT, 1);
    assert!(recorded.printed().starts_with("wrapped\nzeInit 0x78000001\n"));
}
