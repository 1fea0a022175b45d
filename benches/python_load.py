#!/usr/bin/env python3
"""Loading and `temporal_breakdown` of the ranks in a folder: Kymograph beside HTA, in turns.

usage: PYTHONPATH=$(python/stage wheel) tests/.tools/readers/bin/python benches/python_load.py FOLDER

FOLDER has traces of Kineto, one for each rank. Needs the module as a wheel has it:
cargo build --profile wheel -p kymograph-python -p kymograph. Prints the time of each turn, that of
`import kymograph` in a process of its own, and how many times as long HTA takes. Where others use
the machine, `chrt -r 5` before the command keeps them from deciding the result.
"""

import contextlib
import io
import logging
import resource
import statistics
import subprocess
import sys
import time

TURNS = 3
IMPORT = """
import time
began = time.perf_counter()
import kymograph
print(time.perf_counter() - began)
"""


def processors():
    """Seconds of processors that this process and those that it waited for have taken."""
    own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(work):
    """The seconds that it takes by the clock, and of processors, and its result."""
    began, taken = time.perf_counter(), processors()
    result = work()
    return (time.perf_counter() - began, processors() - taken), result


def with_hta(folder):
    from hta.trace_analysis import TraceAnalysis

    with contextlib.redirect_stdout(io.StringIO()):
        return TraceAnalysis(trace_dir=folder).get_temporal_breakdown(visualize=False)


def with_kymograph(folder):
    import kymograph

    return kymograph.load(folder, progress=False).temporal_breakdown(compat="hta").to_pandas()


def main(folder):
    logging.disable(logging.CRITICAL)
    # What importing takes is not what is compared.
    import hta.trace_analysis  # noqa: F401
    import kymograph  # noqa: F401

    theirs, ours = [], []
    for _ in range(TURNS):
        seconds, expected = timed(lambda: with_hta(folder))
        theirs.append(seconds)
        seconds, table = timed(lambda: with_kymograph(folder))
        ours.append(seconds)
        by_clock, taken = zip(theirs[-1], ours[-1])
        print("HTA {:.3f} s, Kymograph {:.3f} s".format(*by_clock), end="; ")
        print("of processors {:.3f} and {:.3f} s".format(*taken))
    for column in expected.columns:
        same = (table[column].to_numpy() == expected[column].to_numpy()).all()
        assert same, f"{column} differs:\n{table}\n{expected}"
    imports = [
        float(subprocess.run([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE).stdout)
        for _ in range(7)
    ]
    print(f"import kymograph: {min(imports) * 1e3:.1f} ms, {statistics.median(imports) * 1e3:.1f} ms")
    for at, what in enumerate(("by the clock", "of processors")):
        long, short = (statistics.median(times[at] for times in side) for side in (theirs, ours))
        print(f"HTA takes {long / short:.1f} times as long {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
