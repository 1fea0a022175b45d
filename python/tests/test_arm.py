"""A program that has called `ky.arm()` is asked for traces by `kymo trigger`, again and again."""

import subprocess
import sys

import judge
import pytest

from kymograph import _command

pytestmark = pytest.mark.heavy

# Goes on until its input ends; says when it can be asked.
PROGRAM = """
import sys, threading
import kymograph as ky

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
with ky.scope("before"):
    ky.arm(buffer="16M")
    ky.arm()
print("armed", flush=True)
while not ended.is_set():
    with ky.scope("work", n=1):
        ended.wait(0.002)
    ky.step()
assert not ky.is_recording()
"""


@pytest.fixture
def program():
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout.readline() == "armed\n"
        yield process
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def kymo(*words):
    done = subprocess.run([_command.path(), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_iterations_and_a_time_on_request(program, tmp_path):
    assert str(program.pid) in kymo("ps")
    for number in range(2):
        path = tmp_path / f"{number}.pftrace"
        kymo("trigger", "--pid", str(program.pid), "--iterations", "3", "-o", path)
        trace = judge.Trace(path, unfinished=True)
        steps = trace.column("SELECT name FROM slice WHERE name LIKE 'ProfilerStep#%' ORDER BY ts")
        first = int(steps[0].split("#")[1])
        assert steps[:3] == [f"ProfilerStep#{first + n}" for n in range(3)]
        assert trace.column("SELECT COUNT(*) FROM slice WHERE name = 'work'")[0] >= 3
        assert trace.args("work") == {"n": "1"}
    path = tmp_path / "time.pftrace"
    kymo("trigger", "--pid", str(program.pid), "--duration", "50ms", "-o", path)
    assert ["work"] == judge.Trace(path, unfinished=True).column(
        "SELECT DISTINCT name FROM slice WHERE name IN ('work', 'before')"
    )
