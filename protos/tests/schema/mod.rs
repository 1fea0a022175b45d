//! Our schema, and where Perfetto's is found.
#![allow(dead_code)] // each test uses its own part

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use prost_reflect::DescriptorPool;
use serde_json::Value;

/// The schema of `proto/perfetto.proto`.
pub(crate) fn ours() -> DescriptorPool {
    compile("perfetto.proto", &Path::new(env!("CARGO_MANIFEST_DIR")).join("proto"))
}

/// Perfetto's schema.
pub(crate) struct Source {
    /// From .proto files.
    pub(crate) pool: DescriptorPool,
    /// From generated code: the lines of each message and enum, by name without dots.
    pub(crate) sdk: BTreeMap<String, BTreeSet<String>>,
    /// Whether Perfetto has moved on since.
    pub(crate) aged: bool,
}

impl Source {
    pub(crate) fn find() -> Source {
        if let Some(checkout) = std::env::var_os("PERFETTO_CHECKOUT") {
            let checkout = PathBuf::from(checkout);
            return Source { pool: perfetto(&checkout), sdk: BTreeMap::new(), aged: false };
        }
        let mut sdk = BTreeMap::new();
        for package in ["perfetto-sdk", "perfetto-sdk-protos-gpu"] {
            read_sdk(&package_root(package).join("src/protos"), &mut sdk);
        }
        Source { pool: perfetto(&package_root("perfetto_protos")), sdk, aged: true }
    }
}

/// A type's name as the SDK's generated code has it.
pub(crate) fn flat(full_name: &str) -> String {
    full_name.trim_start_matches("perfetto.protos.").replace('.', "")
}

/// The schema below `root`. Extensions are in files that the main one does not import.
fn perfetto(root: &Path) -> DescriptorPool {
    let trace = "protos/perfetto/trace";
    let wanted = ["trace.proto", "gpu/gpu_track_event.proto", "gpu/gpu_interned_data.proto"];
    let files = wanted.map(|file| format!("{trace}/{file}"));
    let present = files.into_iter().filter(|file| root.join(file).exists());
    pool(protox::compile(present, [root]))
}

fn compile(file: &str, root: &Path) -> DescriptorPool {
    pool(protox::compile([file], [root]))
}

fn pool(compiled: Result<impl prost_reflect::prost::Message, protox::Error>) -> DescriptorPool {
    let set = compiled.unwrap_or_else(|error| panic!("{error:?}"));
    DescriptorPool::decode(set.encode_to_vec().as_slice()).unwrap()
}

/// Where cargo keeps the source of a dependency of `tests/schema`; fetched when absent.
fn package_root(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests/schema/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == name).unwrap();
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

/// Collects `pb_msg!(Name { line, … })` blocks, and those of extensions and enums.
fn read_sdk(directory: &Path, blocks: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sdk(&path, blocks);
            continue;
        }
        let mut name = String::new();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            if let Some((_, rest)) = line.split_once("!(") {
                name = rest.trim_end_matches(" {").to_owned();
            } else if line.starts_with("});") {
                name.clear();
            } else if !name.is_empty() {
                let line = line.trim().trim_end_matches(',').to_owned();
                blocks.entry(name.clone()).or_default().insert(line);
            }
        }
    }
}
