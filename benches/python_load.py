#!/usr/bin/env python3
"""Loading and `temporal_breakdown` of the ranks in a folder: Kymograph beside HTA, in turns.

usage: PYTHONPATH=$(python/stage wheel) tests/.tools/readers/bin/python benches/python_load.py FOLDER

FOLDER has traces of Kineto, one for each rank. Needs the module as a wheel has it:
cargo build --profile wheel -p kymograph-python -p kymograph. Prints the time of each turn, that of
`import kymograph` in a process of its own, and how many times as long HTA takes.
"""

import contextlib
import io
import logging
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


def timed(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


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
        print(f"HTA {theirs[-1]:.3f} s, Kymograph {ours[-1]:.3f} s")
    for column in expected.columns:
        same = (table[column].to_numpy() == expected[column].to_numpy()).all()
        assert same, f"{column} differs:\n{table}\n{expected}"
    imports = [
        float(subprocess.run([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE).stdout)
        for _ in range(7)
    ]
    print(f"import kymograph: {min(imports) * 1e3:.1f} ms, {statistics.median(imports) * 1e3:.1f} ms")
    print(f"HTA takes {statistics.median(theirs) / statistics.median(ours):.1f} times as long")


if __name__ == "__main__":
    main(*sys.argv[1:])
