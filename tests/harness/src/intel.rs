//! Scripts of work on Intel GPUs, recorded on machines without one.

use std::path::PathBuf;
use std::process::Command;

use crate::fakes;
pub use crate::nvidia::Recorded;
use crate::nvidia::record_on;

/// A machine with an Intel GPU that is not there: a folder with the fake libraries under the
/// names of the real ones.
pub struct Machine {
    folder: tempfile::TempDir,
    version: String,
    faults: Vec<String>,
    devices: u32,
    sycl: bool,
}

/// The file name that PTI of this version has.
fn soname(version: &str) -> &'static str {
    if version.starts_with("0.") { "libpti_view.so.0" } else { "libpti_view.so.1" }
}

impl Machine {
    /// A machine with Level Zero and PTI of this version.
    pub fn with(version: &str) -> Machine {
        let machine = Machine::without_pti(version);
        std::fs::copy(fakes::example("libfake_libpti.so"), machine.pti()).unwrap();
        machine
    }

    /// One with Intel's own PTI, which `tests/oracle/setup pti` has fetched.
    pub fn with_real(version: &str) -> Machine {
        let machine = Machine::without_pti(version);
        let tools = crate::root().join("tests/.tools/pti");
        let from = tools.join(version);
        std::fs::create_dir(machine.folder.path().join("pti")).unwrap();
        for file in ["libpti_view.so.1", "pti/libpti.so"] {
            std::fs::copy(from.join(file), machine.folder.path().join(file)).unwrap();
        }
        machine
    }

    pub fn without_pti(version: &str) -> Machine {
        let machine = Machine::bare(version);
        let zero = machine.folder.path().join("libze_loader.so.1");
        std::fs::copy(fakes::example("libfake_libze.so"), zero).unwrap();
        machine
    }

    /// A machine that has neither.
    pub fn bare(version: &str) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let (version, faults) = (version.to_owned(), Vec::new());
        Machine { folder, version, faults, devices: 1, sycl: false }
    }

    /// Adds to `FAKE_PTI_FAULT`.
    pub fn fault(mut self, fault: &str) -> Machine {
        self.faults.push(fault.to_owned());
        self
    }

    pub fn devices(mut self, devices: u32) -> Machine {
        self.devices = devices;
        self
    }

    /// Programs on it are linked with SYCL's runtime (which is a library that does nothing).
    pub fn sycl(mut self) -> Machine {
        let sycl = self.folder.path().join("libsycl.so.8");
        std::fs::copy(fakes::example("libfake_libze.so"), sycl).unwrap();
        self.sycl = true;
        self
    }

    /// It has a Gaudi, too.
    pub fn gaudi(self) -> Machine {
        let synapse = self.folder.path().join("libSynapse.so");
        std::fs::copy(fakes::example("libfake_libsynapse.so"), synapse).unwrap();
        self
    }

    /// Takes a function out of PTI.
    pub fn without(self, function: &str) -> Machine {
        fakes::rename(&self.pti(), function);
        self
    }

    pub fn pti(&self) -> PathBuf {
        self.folder.path().join(soname(&self.version))
    }

    /// Lets a command run on this machine.
    pub fn prepare(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command.env("FAKE_PTI_VERSION", &self.version);
        command.env("FAKE_PTI_FAULT", self.faults.join(","));
        command.env("FAKE_XPU_DEVICES", self.devices.to_string());
        if self.sycl {
            command.env("LD_PRELOAD", "libsycl.so.8");
        }
        let others = ["XPTI_SUBSCRIBERS", "INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH"];
        for name in others.into_iter().chain(["NVTX_INJECTION64_PATH"]) {
            command.env_remove(name);
        }
    }

    /// Records the fake program with this script; `arguments` are the program's, and after
    /// `--` those of `kymo record`.
    pub fn record(&self, script: &str, arguments: &[&str]) -> Recorded {
        let path = self.folder.path().join("script");
        std::fs::write(&path, script).unwrap();
        let interface = if self.sycl { "--sycl" } else { "--xpu" };
        let arguments = [&[interface], arguments].concat();
        let program = fakes::example("fake_cuda_program");
        record_on("xpu", |command| self.prepare(command), &program, &path, &arguments)
    }
}
