"""Builds the wheel (PEP 517): `kymo` and `libkymograph.so` by cargo, all else by maturin.

Both lie beside the module, in `kymograph/bin`, so that nothing needs to know where Python puts
scripts and libraries. The profile `wheel` of the workspace strips them; it has a folder of its own
in `target`, which `cargo build --release` does not share.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BINARIES = ("kymo", "libkymograph.so")


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    import maturin

    os.chdir(HERE)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    wheel_directory = os.path.abspath(wheel_directory)
    os.chdir(HERE)
    bin = HERE / "kymograph" / "bin"
    bin.mkdir(exist_ok=True)
    try:
        for path in _built():
            shutil.copy(path, bin)
        return maturin.build_wheel(wheel_directory, config_settings)
    finally:
        shutil.rmtree(bin)


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("kymograph is built from a clone of its repository: pip wheel --no-deps ./python")


def _built():
    """The paths of what cargo builds."""
    manifest = HERE.parent / "Cargo.toml"
    if not manifest.is_file():
        sys.exit(f"{manifest} is missing: kymograph is built from a clone of its repository")
    command = ["cargo", "build", "--locked", "--profile", "wheel", "--package", "kymograph"]
    command += ["--manifest-path", str(manifest), "--message-format", "json-render-diagnostics"]
    target = os.environ.get("CARGO_BUILD_TARGET")
    command += ["--target", target] if target else []
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    except FileNotFoundError:
        sys.exit("cargo is missing: install Rust 1.91 or newer, https://rustup.rs")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(command)} failed ({error.returncode})")
    messages = map(json.loads, done.stdout.splitlines())
    names = {name for m in messages for name in m.get("filenames", []) + [m.get("executable")]}
    found = {os.path.basename(name): name for name in names if name}
    missing = [name for name in BINARIES if name not in found]
    if missing:
        sys.exit(f"cargo did not build {' and '.join(missing)}")
    return [found[name] for name in BINARIES]
