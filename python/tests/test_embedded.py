"""A program that embeds Python records with the package."""

import os
import pathlib
import subprocess
import sys
import sysconfig

import judge
import pytest

pytestmark = pytest.mark.heavy

PROGRAM = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int main(int argc, char **argv) {
    (void)argc;
    Py_Initialize();
    PyRun_SimpleString(
        "import sys; sys.path[:0] = PATHS\n"
        "import kymograph as ky\n"
        "recording = ky.record(TRACE)\n"
        "with ky.scope('embedded', n=7): pass\n");
    PyRun_SimpleString("assert recording.stop().events == 1");
    return Py_FinalizeEx() < 0 ? 1 : argv[0] == NULL;
}
"""


def test_a_program_that_embeds_python(tmp_path):
    config = sysconfig.get_config_vars()
    # The Python's own, or what was fetched beside one that came without.
    fetched = os.environ.get("TEST_EMBED", "")
    root = "" if pathlib.Path(config["INCLUDEPY"], "Python.h").exists() else fetched
    include = root + config["INCLUDEPY"]
    libraries = [root + config["LIBDIR"], root + config["LIBPL"]]
    names = [config["LDLIBRARY"], config["LIBRARY"]]
    there = [pathlib.Path(folder, name) for folder in libraries for name in names if name]
    needed = [pathlib.Path(include, "Python.h").exists(), any(map(pathlib.Path.exists, there))]
    if not all(needed):
        pytest.skip("this Python came without what embeds it, and Debian's archive is not there")
    trace = tmp_path / "t.pftrace"
    source, program = tmp_path / "embed.c", tmp_path / "embed"
    text = PROGRAM.replace("TRACE", repr(str(trace))).replace("PATHS", repr(sys.path))
    source.write_text(text)
    command = ["cc", "-o", program, source, f"-I{include}", f"-I{root}/usr/include"]
    command += [f"-L{folder}" for folder in libraries]
    command += [f"-lpython{config['VERSION']}{getattr(sys, 'abiflags', '')}"]
    command += [*config["LIBS"].split(), *config["SYSLIBS"].split(), "-Wl,-export-dynamic"]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    environment = {"PYTHONHOME": sys.base_prefix, "LD_LIBRARY_PATH": libraries[0]}
    done = subprocess.run(
        [program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    read = judge.Trace(trace)
    assert read.column("SELECT name FROM slice") == ["embedded"]
    assert read.args("embedded") == {"n": "7"}
