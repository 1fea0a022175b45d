//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Handlers for the end of threads and of the process, and for forks, point into the
    // library: it must stay where it is, even after dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A program linked with it finds the one that `kymo record` has loaded already.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libkymograph.so");
}
