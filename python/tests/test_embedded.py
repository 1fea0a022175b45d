"""A program that embeds Python records with the package."""

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
    include, libraries = config["INCLUDEPY"], [config["LIBDIR"], config["LIBPL"]]
    if not pathlib.Path(include, "Python.h").exists():
        pytest.skip("this Python has no headers")
    trace = tmp_path / "t.pftrace"
    source, program = tmp_path / "embed.c", tmp_path / "embed"
    text = PROGRAM.replace("TRACE", repr(str(trace))).replace("PATHS", repr(sys.path))
    source.write_text(text)
    command = ["cc", "-o", program, source, f"-I{include}"]
    command += [f"-L{folder}" for folder in libraries]
    command += [f"-lpython{config['VERSION']}{getattr(sys, 'abiflags', '')}"]
    command += [*config["LIBS"].split(), *config["SYSLIBS"].split(), "-Wl,-export-dynamic"]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode:
        pytest.skip(f"no program can be linked with this Python: {built.stdout[-300:]}")
    environment = {"PYTHONHOME": sys.base_prefix, "LD_LIBRARY_PATH": config["LIBDIR"]}
    done = subprocess.run(
        [program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    read = judge.Trace(trace)
    assert read.column("SELECT name FROM slice") == ["embedded"]
    assert read.args("embedded") == {"n": "7"}
