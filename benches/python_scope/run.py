#!/usr/bin/env python3
"""What a scope costs, off and on, beside context managers in C that do nothing (empty.c).

usage: PYTHONPATH=FOLDER python benches/python_scope/run.py

FOLDER has the package as a wheel lays it out, built with optimisation: `pip install ./python`, or
`python/stage wheel` after `cargo build --profile wheel -p kymograph-python -p kymograph`. Needs
Python's headers (3.10 or newer) and a C compiler. Prints the best of many turns in nanoseconds; the
empty loop is taken off, and what is compared takes turns, so that a busy machine slows all alike.
"""

import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LOOPS, TURNS = 20_000, 60


def build(folder):
    target = folder / ("empty" + sysconfig.get_config_var("EXT_SUFFIX"))
    include = sysconfig.get_paths()["include"]
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{include}", HERE / "empty.c", "-o", target]
    subprocess.run(command, check=True)
    sys.path.insert(0, str(folder))


def loop(call):
    """A function that times loops of this `with` statement."""
    code = (
        "def timed(clock, loops, ky, empty):\n"
        "    began = clock()\n"
        "    for _ in loops:\n"
        f"        {call}\n"
        "    return clock() - began\n"
    )
    space = {}
    exec(code, space)
    return space["timed"]


def best(ky, empty):
    timers = {
        "nothing": loop("pass"),
        "shared in C": loop("with empty.shared('name'): pass"),
        "Empty in C": loop("with empty.Empty('name'): pass"),
        "scope": loop("with ky.scope('name'): pass"),
        "scope with an argument": loop("with ky.scope('name', n=1): pass"),
    }
    times = dict.fromkeys(timers, float("inf"))
    for _ in range(TURNS):
        for name, timer in timers.items():
            taken = timer(time.perf_counter_ns, range(LOOPS), ky, empty) / LOOPS
            times[name] = min(times[name], taken)
    nothing = times.pop("nothing")
    return {name: taken - nothing for name, taken in times.items()}


def show(title, times):
    print(f"\n{title}")
    for name, taken in times.items():
        against = " ".join(
            f"{taken / times[other]:5.2f} x {other}" for other in ("Empty in C", "shared in C")
        )
        print(f"  {name:24} {taken:7.1f} ns   {against}")


def main():
    import kymograph as ky

    with tempfile.TemporaryDirectory() as folder:
        build(pathlib.Path(folder))
        import empty

        show("no library: the program has not recorded anything", best(ky, empty))
        with ky.record(pathlib.Path(folder) / "t.pftrace", buffer="1G") as recording:
            on = best(ky, empty)
        summary = recording.stop()
        show(f"recorded ({summary.events:,} events, {summary.lost:,} lost)", on)
        show("off: after a recording", best(ky, empty))


if __name__ == "__main__":
    main()
