//! A machine with a GPU that is not there: a folder with the fake libraries under the
//! names of the real ones, for programs to find.
//!
//! ```ignore
//! let machine = Machine::with("12.6").fault("drop:3");
//! let output = machine.command("kernel k dur=5us").output().unwrap();
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub struct Machine {
    folder: TempDir,
    version: String,
    faults: Vec<String>,
    devices: u32,
}

/// The file name that CUPTI of this version has.
fn soname(version: &str) -> String {
    let name = if version == "11.8" { version } else { &version[..2] };
    format!("libcupti.so.{name}")
}

/// Something of `kymograph-backends` that cargo builds beside its tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps");
    let path = profile.join("examples").join(name);
    assert!(path.exists(), "no {name}: run cargo build -p kymograph-backends --examples");
    path
}

/// Takes a function out of a library: nobody asks for what it is called now.
pub fn rename(library: &Path, function: &str) {
    let mut bytes = std::fs::read(library).expect("a fake library");
    let name = format!("\0{function}\0").into_bytes();
    let mut found = false;
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(&name) {
            bytes[at + 1] = b'X';
            found = true;
        }
    }
    assert!(found, "the fake library never had {function}");
    std::fs::write(library, bytes).expect("a write");
}

/// Spoils a text in a library, wherever it stands: a name that it looks up.
pub fn spoil(library: &Path, text: &str) {
    let mut bytes = std::fs::read(library).expect("a fake library");
    let text = format!("{text}\0").into_bytes();
    let places: Vec<_> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(&text)).collect();
    assert!(!places.is_empty(), "the fake library never had it");
    places.into_iter().for_each(|at| bytes[at] = b'X');
    std::fs::write(library, bytes).expect("a write");
}

/// Lets a command find the libraries in a folder first.
pub fn find_libraries(command: &mut Command, folder: &Path) {
    let mut paths = vec![folder.to_owned()];
    let set = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH");
    let others = match set {
        Some((_, value)) => value.map(ToOwned::to_owned),
        None => std::env::var_os("LD_LIBRARY_PATH"),
    };
    if let Some(others) = others {
        paths.extend(std::env::split_paths(&others));
    }
    command.env("LD_LIBRARY_PATH", std::env::join_paths(paths).expect("no colon in them"));
}

impl Machine {
    /// A machine with a driver and CUPTI of this version.
    pub fn with(version: &str) -> Machine {
        let machine = Machine::with_driver_only(version);
        std::fs::copy(example("libfake_libcupti.so"), machine.cupti()).expect("a copy");
        machine
    }

    pub fn with_driver_only(version: &str) -> Machine {
        let machine = Machine::without_driver(version);
        let cuda = machine.folder.path().join("libcuda.so.1");
        std::fs::copy(example("libfake_libcuda.so"), cuda).expect("a copy");
        machine
    }

    /// A machine that has neither.
    pub fn without_driver(version: &str) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        Machine { folder, version: version.to_owned(), faults: Vec::new(), devices: 1 }
    }

    /// Adds to `FAKE_CUPTI_FAULT`.
    pub fn fault(mut self, fault: &str) -> Machine {
        self.faults.push(fault.to_owned());
        self
    }

    /// Adds NVML.
    pub fn nvml(self) -> Machine {
        let library = self.folder.path().join("libnvidia-ml.so.1");
        std::fs::copy(example("libfake_libnvml.so"), library).expect("a copy");
        self
    }

    pub fn devices(mut self, devices: u32) -> Machine {
        self.devices = devices;
        self
    }

    /// Takes a function out of CUPTI.
    pub fn without(self, function: &str) -> Machine {
        rename(&self.cupti(), function);
        self
    }

    /// Where the fake CUPTI lies.
    pub fn cupti(&self) -> PathBuf {
        self.folder.path().join(soname(&self.version))
    }

    /// A file with this script.
    pub fn script(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("script");
        std::fs::write(&path, text).expect("a script");
        path
    }

    /// The program that does what scripts say.
    pub fn program(&self) -> PathBuf {
        example("fake_cuda_program")
    }

    /// Lets a command run on this machine.
    pub fn prepare(&self, command: &mut Command) {
        find_libraries(command, self.folder.path());
        command.env("FAKE_CUPTI_VERSION", &self.version);
        command.env("FAKE_CUPTI_FAULT", self.faults.join(","));
        command.env("FAKE_CUDA_DEVICES", self.devices.to_string());
        for name in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "FAKE_CUPTI_SCRIPT"] {
            command.env_remove(name);
        }
    }

    /// The program with this script, untraced.
    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new(self.program());
        self.prepare(&mut command);
        command.arg(self.script(script));
        command
    }
}
