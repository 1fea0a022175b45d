"""What HolisticTraceAnalysis and torch-tb-profiler say about a trace, as JSON on stdout.

usage: what_tools_say.py FILE.json[.gz]

Each analysis is a list of rows, or the last line of the exception that it ended with: tools
fail on some traces, and have to fail on ours in the same way.
"""

import contextlib
import gzip
import io
import json
import logging
import math
import pathlib
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def plain(value):
    """A value of numpy or pandas as JSON; rounded, as sums depend on the order of events."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(f"{value:.9g}")
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str) and value.startswith("{"):  # JSON in JSON: events for a viewer
        with contextlib.suppress(ValueError):
            return plain(json.loads(value))
    if hasattr(value, "__dict__"):
        return plain(vars(value))
    return value


def rows(frame):
    """A data frame's rows, in an order that does not depend on that of the events."""
    if frame is None:
        return None
    table = [plain(list(row)) for row in frame.itertuples(index=False)]
    return {"columns": list(map(str, frame.columns)), "rows": sorted(table, key=json.dumps)}


def attempt(function):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return function()
    except Exception as error:  # whatever a tool ends with is its answer
        return f"{type(error).__name__}: {str(error).splitlines()[-1:]}"


def rank_of(path):
    text = gzip.open(path, "rt").read() if path.endswith(".gz") else open(path).read()
    return json.loads(text).get("distributedInfo", {}).get("rank", 0)


def hta(path):
    from hta.trace_analysis import TraceAnalysis

    rank = rank_of(path)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            analysis = TraceAnalysis(trace_files={rank: path}, trace_dir="/", include_last_profiler_step=True)
    except Exception as error:
        return {"load": f"{type(error).__name__}: {error}"}

    def kernels():
        types, each = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
        return [rows(types), rows(each)]

    def launches():
        stats = analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)
        return {str(key): rows(frame) for key, frame in stats.items()}

    return {
        "temporal breakdown": attempt(lambda: rows(analysis.get_temporal_breakdown(visualize=False))),
        "idle": attempt(lambda: rows(analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)[0])),
        "kernel breakdown": attempt(kernels),
        "communication overlap": attempt(lambda: rows(analysis.get_comm_comp_overlap(visualize=False))),
        "launches": attempt(launches),
    }


def tb(path):
    import torch_tb_profiler.profiler  # before .run, which needs it  # noqa: F401
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    with tempfile.TemporaryDirectory() as cache:
        name = pathlib.Path(cache) / ("trace.json.gz" if path.endswith(".gz") else "trace.json")
        shutil.copy(path, name)  # the name is in what it says
        try:
            data = RunProfileData.parse("worker", "1", str(name), cache)
        except Exception as error:
            return {"load": f"{type(error).__name__}: {error}"}
        generator = RunGenerator("worker", "1", data)
        run = generator.generate_run_profile()

    def table(found):
        found = plain(found)
        inner = found.get("data", found) if isinstance(found, dict) else found
        # Both lists and tables of Google charts: rows in any order.
        for key in ("rows", "data"):
            if isinstance(inner, dict) and isinstance(inner.get(key), list):
                inner[key].sort(key=json.dumps)
        return sorted(inner, key=json.dumps) if isinstance(inner, list) else found

    return {
        "overview": plain(run.overview),
        "operators": table(run.operation_table_by_name),
        "operators and inputs": table(run.operation_table_by_name_input),
        "kernels": table(getattr(run, "kernel_table", None)),
        "kernels and operators": table(getattr(run, "kernel_op_table", None)),
        "GPU": [plain(run.gpu_metrics), plain(run.gpu_summary)],
        "memory": attempt(lambda: plain(data.memory_snapshot and data.memory_snapshot.get_memory_statistics(data.tid2tree))),
    }


if __name__ == "__main__":
    path = str(pathlib.Path(sys.argv[1]).resolve())
    json.dump({"HTA": hta(path), "TB": tb(path)}, sys.stdout, indent=1, default=str)
