//! Scripts of work on Gaudi, recorded on machines without one.

use std::path::PathBuf;
use std::process::Command;

use crate::fakes;
pub use crate::nvidia::Recorded;
use crate::nvidia::record_on;

/// A machine with Gaudis that are not there: a folder with the fake Synapse.
pub struct Machine {
    folder: tempfile::TempDir,
    version: String,
    faults: Vec<String>,
    devices: u32,
    profile: Option<&'static str>,
}

impl Machine {
    /// A machine with this release of Synapse: `new` or `old`.
    pub fn with(version: &str) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let (version, faults) = (version.to_owned(), Vec::new());
        let machine = Machine { folder, version, faults, devices: 1, profile: None };
        std::fs::copy(fakes::example("libfake_libsynapse.so"), machine.synapse()).unwrap();
        machine
    }

    /// Adds to `FAKE_HPU_FAULT`.
    pub fn fault(mut self, fault: &str) -> Machine {
        self.faults.push(fault.to_owned());
        self
    }

    pub fn devices(mut self, devices: u32) -> Machine {
        self.devices = devices;
        self
    }

    /// The user has set `HABANA_PROFILE` to this.
    pub fn profile(mut self, value: &'static str) -> Machine {
        self.profile = Some(value);
        self
    }

    /// Takes a function out of Synapse.
    pub fn without(self, function: &str) -> Machine {
        fakes::rename(&self.synapse(), function);
        self
    }

    fn synapse(&self) -> PathBuf {
        self.folder.path().join("libSynapse.so")
    }

    /// Lets a command run on this machine.
    pub fn prepare(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command.env("FAKE_HPU_VERSION", &self.version);
        command.env("FAKE_HPU_FAULT", self.faults.join(","));
        command.env("FAKE_HPU_DEVICES", self.devices.to_string());
        for name in ["HABANA_PROFILE", "HABANA_SHIM_DISABLE"] {
            command.env_remove(name);
        }
        if let Some(value) = self.profile {
            command.env("HABANA_PROFILE", value);
        }
    }

    /// Records the fake program with this script; `arguments` are the program's, and after
    /// `--` those of `kymo record`.
    pub fn record(&self, script: &str, arguments: &[&str]) -> Recorded {
        let path = self.folder.path().join("script");
        std::fs::write(&path, script).unwrap();
        let arguments = [&["--hpu"], arguments].concat();
        let program = fakes::example("fake_cuda_program");
        record_on("hpu", |command| self.prepare(command), &program, &path, &arguments)
    }
}
