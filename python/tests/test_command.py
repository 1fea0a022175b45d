"""`kymo` and `python -m kymograph`."""

import re
import subprocess
import sys

import kymograph as ky
from kymograph import __main__ as main
from kymograph import _command


def run(*arguments, **options):
    return subprocess.run(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_the_module_is_the_command():
    said = run(sys.executable, "-m", "kymograph", "--version")
    assert said.returncode == 0 and said.stdout.split()[:2] == ["kymo", ky.__version__]
    wrong = run(sys.executable, "-m", "kymograph", "analyze", "nothing.json")
    assert wrong.returncode != 0 and "nothing.json" in wrong.stderr


def test_the_entry_point_is_the_command():
    program = "import sys; sys.argv = ['kymo', '--version']; from kymograph import _command; _command.kymo()"
    assert run(sys.executable, "-c", program).stdout.split()[:2] == ["kymo", ky.__version__]


def test_options_with_a_value_are_known():
    text = run(_command.path(), "record", "--help").stdout
    found = re.findall(r"^ +(?:(-\w), )?(--[\w-]+) <", text, re.MULTILINE)
    names = {name for pair in found for name in pair if name}
    names |= set(re.findall(r"\[alias: (--[\w-]+)\]", text))
    assert names == set(main._VALUED)


def test_scripts_are_run_by_this_python():
    python = sys.executable
    for given, expected in [
        ("record a.py x", f"record -- {python} a.py x"),
        ("record -o t.pftrace --flight 3s a.py", f"record -o t.pftrace --flight 3s -- {python} a.py"),
        ("record --output=t.py a.py", f"record --output=t.py -- {python} a.py"),
        ("record -- a.py", "record -- a.py"),
        ("record sleep 1", "record sleep 1"),
        ("record python b.py", "record python b.py"),
        ("record -o t.py", "record -o t.py"),
        ("analyze a.py", "analyze a.py"),
        ("record", "record"),
    ]:
        assert main.arguments(given.split()) == expected.split()
