#!/usr/bin/env python3
"""HTA's own unit tests of `TraceAnalysis` and notebooks, against `kymograph.compat.hta`.

usage: PYTHONPATH=FOLDER python theirs/run_hta.py CHECKOUT [PYTEST-ARGUMENT…]
       PYTHONPATH=FOLDER python theirs/run_hta.py --notebook NOTEBOOK NAME=VALUE…

FOLDER has the package (python/stage makes it) and pytest; CHECKOUT is facebookresearch/
HolisticTraceAnalysis with its data, which Git LFS holds in part. Needs HTA itself (for all but the
class), pandas and networkx: tests/.tools/readers has them. The class in `hta.trace_analysis` is
replaced; a notebook is run cell by cell, with names replaced in its text (the folders of traces).
"""

import json
import pathlib
import sys

# The tests that use the class; the others are of modules that we do not have.
FILES = ("test_trace_analysis.py", "test_critical_path_analysis.py", "test_cupti_profiler.py")


class Traces:
    """What the class calls `t`: our trace, and HTA's own (its frames and symbols), which tests look
    into to know what to expect."""

    def __init__(self, ours, arguments):
        self._ours, self._arguments, self._theirs = ours, arguments, None

    def __getattr__(self, name):
        if hasattr(self._ours, name):
            return getattr(self._ours, name)
        if self._theirs is None:
            from hta.common.trace import Trace

            self._theirs = Trace(*self._arguments)
            self._theirs.load_traces()
        return getattr(self._theirs, name)


def replace():
    import hta.analyzers.critical_path_analysis
    import hta.trace_analysis

    from kymograph.compat import _critical_path
    from kymograph.compat import hta as ours

    class TraceAnalysis(ours.TraceAnalysis):
        def __init__(self, trace_files=None, trace_dir=".", **options):
            super().__init__(trace_files, trace_dir, **options)
            self.t = Traces(self.t, (trace_files, trace_dir))

    def node_name(graph, event):
        frame = graph._analysis.t.get_trace(graph._options["ranks"][0])
        return graph._analysis.t.symbol_table.sym_table[frame.name.loc[event]]

    # What tests ask HTA's graph for an event's name with.
    _critical_path.CPGraph._get_node_name = node_name
    # Looked up when it is called: tests put something in its place.
    ours._write = lambda path, trace: hta.common.trace.Trace.write_raw_trace(path, trace)
    hta.trace_analysis.TraceAnalysis = TraceAnalysis
    hta.trace_analysis.TimeSeriesTypes = ours.TimeSeriesTypes
    for name in ("CPGraph", "CPNode", "CPEdge", "CPEdgeType", "restore_cpgraph"):
        setattr(hta.analyzers.critical_path_analysis, name, getattr(_critical_path, name))


def tests(checkout, arguments):
    import pytest

    root = pathlib.Path(checkout)
    files = [str(root / "tests" / name) for name in FILES]
    options = ["-p", "no:cacheprovider", "-q", "--rootdir", checkout]
    return pytest.main([*options, *(arguments or []), *files])


def notebook(path, names):
    pairs = [name.split("=", 1) for name in names]
    space = {"__name__": "__main__"}
    ran = failed = 0
    for number, cell in enumerate(json.loads(pathlib.Path(path).read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        # Commands of IPython.
        text = "\n".join(
            line for line in lines if not line.lstrip().startswith(("%", "!")) and line[-1:] != "?"
        )
        for module in ("hta.trace_analysis", "hta.analyzers.critical_path_analysis"):
            text = text.replace(f"from {module} import", "from kymograph.compat.hta import")
        for name, value in pairs:
            text = text.replace(name, value)
        if not text.strip():
            continue
        ran += 1
        try:
            exec(compile(text, f"cell {number}", "exec"), space)
        except Exception as error:
            failed += 1
            print(f"cell {number}: {type(error).__name__}: {error}")
    print(f"{path}: {ran - failed} of {ran} cells run")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--notebook"]:
        sys.exit(notebook(sys.argv[2], sys.argv[3:]))
    # Its tests are of its own version.
    sys.path.insert(0, sys.argv[1])
    replace()
    sys.exit(tests(sys.argv[1], sys.argv[2:]))
