//! Scripts of HIP work, recorded on machines without a GPU.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::fakes;
pub use crate::nvidia::Recorded;
use crate::nvidia::record_on;

/// Versions whose layouts and numbers differ: ROCm 6.3, 6.4, 7.0, 7.1, 2026.
pub const VERSIONS: [&str; 5] = ["0.5", "0.6", "1.0", "1.1", "1.3"];

/// A machine with AMD GPUs that are not there: a folder with the fake libraries under the
/// names of the real ones.
pub struct Machine {
    folder: TempDir,
    version: String,
    faults: Vec<String>,
    devices: u32,
}

impl Machine {
    /// A machine with rocprofiler-sdk of this version.
    pub fn with(version: &str) -> Machine {
        let machine = Machine::without_rocprofiler();
        std::fs::copy(fakes::example("libfake_librocprofiler_sdk.so"), machine.sdk()).unwrap();
        let machine = Machine { version: version.to_owned(), ..machine };
        // The fake is of all versions, and this name is there from 1.3 on.
        if version < "1.3" { machine.never_late() } else { machine }
    }

    /// One that has HIP, but nothing to record it with.
    pub fn without_rocprofiler() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let libraries = [
            ("libfake_libamdhip64.so", "libamdhip64.so.6"),
            ("libfake_librocprofiler_register.so", "librocprofiler-register.so.0"),
        ];
        for (fake, name) in libraries {
            std::fs::copy(fakes::example(fake), folder.path().join(name)).unwrap();
        }
        Machine { folder, version: "1.0".to_owned(), faults: Vec::new(), devices: 1 }
    }

    /// Adds to `FAKE_ROCPROFILER_FAULT`.
    pub fn fault(mut self, fault: &str) -> Machine {
        self.faults.push(fault.to_owned());
        self
    }

    pub fn devices(mut self, devices: u32) -> Machine {
        self.devices = devices;
        self
    }

    /// Takes a function out of rocprofiler-sdk.
    pub fn without(self, function: &str) -> Machine {
        fakes::rename(&self.sdk(), function);
        self
    }

    /// Takes a function out of rocprofiler-register.
    pub fn register_without(self, function: &str) -> Machine {
        fakes::rename(&self.folder.path().join("librocprofiler-register.so.0"), function);
        self
    }

    /// Has rocprofiler-sdk never ask for tables that were handed over before.
    pub fn never_late(self) -> Machine {
        fakes::spoil(&self.sdk(), "rocprofiler_register_invoke_all_registrations");
        self
    }

    fn sdk(&self) -> PathBuf {
        self.folder.path().join("librocprofiler-sdk.so")
    }

    /// Lets a command run on this machine.
    pub fn prepare(&self, command: &mut Command) {
        fakes::find_libraries(command, self.folder.path());
        command.env("FAKE_ROCPROFILER_VERSION", &self.version);
        command.env("FAKE_ROCPROFILER_FAULT", self.faults.join(","));
        command.env("FAKE_HIP_DEVICES", self.devices.to_string());
    }

    /// A file with this script.
    pub fn script(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("script");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Records the fake program with this script, as `nvidia::record` does.
    pub fn record(&self, script: &str, arguments: &[&str]) -> Recorded {
        self.record_with(|_| {}, "--hip", script, arguments)
    }

    /// The same, with something more in the environment, and the program's word for which
    /// API it uses.
    pub fn record_with(
        &self,
        set: impl Fn(&mut Command),
        api: &str,
        script: &str,
        arguments: &[&str],
    ) -> Recorded {
        let script = self.script(script);
        let prepare = |command: &mut Command| {
            self.prepare(command);
            set(command);
        };
        let arguments = [&[api], arguments].concat();
        record_on("hip", prepare, &fakes::example("fake_cuda_program"), &script, &arguments)
    }
}

impl Recorded {
    /// A fact of the one process that used HIP: `hip.PID.KEY`.
    pub fn hip(&self, key: &str) -> Option<&str> {
        self.fact("hip", key)
    }
}
