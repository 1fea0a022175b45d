"""What HolisticTraceAnalysis or torch-tb-profiler says about a trace, as JSON on stdout.

usage: what_tools_say.py HTA FILE.json[.gz] ...   of several ranks, all at once
       what_tools_say.py TB FILE.json[.gz]
       what_tools_say.py FILE.json[.gz]           both, each under its name

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
    """A data frame's rows."""
    if frame is None:
        return None
    table = [plain(list(row)) for row in frame.itertuples(index=False)]
    return {"columns": list(map(str, frame.columns)), "rows": table}


def attempt(function):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return function()
    except Exception as error:  # whatever a tool ends with is its answer
        return f"{type(error).__name__}: {str(error).splitlines()[-1:]}"


def rank_of(path):
    text = gzip.open(path, "rt").read() if path.endswith(".gz") else open(path).read()
    return json.loads(text).get("distributedInfo", {}).get("rank", 0)


def hta(paths):
    """What an HTA says: HolisticTraceAnalysis, or traceinsight, which has the same modules."""
    from hta.trace_analysis import TimeSeriesTypes, TraceAnalysis

    files = {}
    for path in paths:
        rank = rank_of(path)
        files[rank if rank not in files else max(files) + 1] = path
    ranks = sorted(files)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            analysis = TraceAnalysis(trace_files=files, trace_dir="/", include_last_profiler_step=True)
    except Exception as error:
        return {"load": f"{type(error).__name__}: {error}"}

    def kernels():
        types, each = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
        return [rows(types), rows(each)]

    def launches():
        stats = analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
        return {str(key): rows(frame) for key, frame in stats.items()}

    def each(frames):
        return {str(key): rows(frame) for key, frame in frames.items()}

    def blocked():
        series = analysis.get_queue_length_time_series(ranks=ranks)
        return rows(analysis.get_time_spent_blocked_on_full_queue(series, max_queue_length=8))

    def annotations(on_gpu):
        return rows(analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=on_gpu, visualize=False))

    def sequences():
        with tempfile.TemporaryDirectory() as folder:
            found = analysis.get_frequent_cuda_kernel_sequences("aten::add", folder, rank=ranks[0])
        return rows(found)

    def critical_path():
        graph, whole = analysis.critical_path_analysis(rank=ranks[0], annotation="ProfilerStep", instance_id=0)
        nodes = sorted(graph.critical_path_nodes)
        return [whole, nodes, rows(graph.get_critical_path_breakdown())]

    def counters():
        # Its files are written beside the trace: what it puts into them is asked for.
        with tempfile.TemporaryDirectory() as folder:
            copies = {rank: shutil.copy(path, pathlib.Path(folder) / f"{rank}.json.gz") for rank, path in files.items()}
            with contextlib.redirect_stderr(io.StringIO()):
                own = TraceAnalysis(trace_files=copies, trace_dir=folder, include_last_profiler_step=True)
                own.generate_trace_with_counters(time_series=TimeSeriesTypes.QueueLength, ranks=ranks)
            out = [path for path in pathlib.Path(folder).iterdir() if "_with_counters" in path.name]
            added = [json.load(gzip.open(path, "rt")) for path in sorted(out)]
        events = [event for trace in added for event in trace["traceEvents"] if event.get("ph") == "C"]
        return sorted((plain(event) for event in events), key=json.dumps)

    return {
        "temporal breakdown": attempt(lambda: rows(analysis.get_temporal_breakdown(visualize=False))),
        "idle": attempt(lambda: rows(analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)[0])),
        "idle intervals": attempt(lambda: rows(analysis.get_idle_time_breakdown(ranks=ranks, visualize=False, show_idle_interval_stats=True)[1])),
        "kernel breakdown": attempt(kernels),
        "communication overlap": attempt(lambda: rows(analysis.get_comm_comp_overlap(visualize=False))),
        "launches": attempt(launches),
        "queue length": attempt(lambda: rows(analysis.get_queue_length_summary(ranks=ranks))),
        "queue length over time": attempt(lambda: each(analysis.get_queue_length_time_series(ranks=ranks))),
        "blocked on full queues": attempt(blocked),
        "memory bandwidth": attempt(lambda: rows(analysis.get_memory_bw_summary(ranks=ranks))),
        "memory bandwidth over time": attempt(lambda: each(analysis.get_memory_bw_time_series(ranks=ranks))),
        "operators and kernels": attempt(lambda: each(analysis.get_aten_op_kernels_and_delay(ranks=ranks))),
        "annotations of the GPU": attempt(lambda: annotations(True)),
        "annotations of the host": attempt(lambda: annotations(False)),
        "kernels and annotations": attempt(lambda: rows(analysis.get_gpu_kernels_with_user_annotations(rank=ranks[0]))),
        "kernel sequences": attempt(sequences),
        "profiler steps": attempt(lambda: plain(analysis.get_profiler_steps())),
        "stragglers": attempt(lambda: plain(analysis.get_potential_stragglers())),
        "critical path": attempt(critical_path),
        "CUPTI counters": attempt(lambda: [rows(frame) for frame in analysis.get_cupti_counter_data_with_operators(ranks=ranks)]),
        "trace with counters": attempt(counters),
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
    tool, *paths = sys.argv[1:] if sys.argv[1] in ("HTA", "TB") else ["", *sys.argv[1:]]
    paths = [str(pathlib.Path(path).resolve()) for path in paths]
    answers = {"HTA": lambda: hta(paths), "TB": lambda: tb(paths[0])}
    answer = answers[tool]() if tool else {tool: ask() for tool, ask in answers.items()}
    json.dump(answer, sys.stdout, indent=1, default=str)
