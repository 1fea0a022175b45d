#!/usr/bin/env python3
"""usage: make_goldens.py OUT_FOLDER LABEL RANK=TRACE...

Has HolisticTraceAnalysis 0.5.0 or traceinsight 0.6.1 analyse traces, whichever is installed,
and writes the tables that analysis/tests/goldens compares with ours. LABEL is v0.5.0 or head;
with `-exact` behind it times are not rounded. Tried with

    pip install traceinsight==0.6.1 pandas==2.2.3 numpy==2.2.6 networkx plotly psutil
    pip install HolisticTraceAnalysis==0.5.0 pandas==2.1.4 numpy==1.26.4
"""

import json
import os
import pathlib
import sys
import tempfile

out, label = pathlib.Path(sys.argv[1]), sys.argv[2]
if label.endswith("-exact"):
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis  # noqa: E402

import plotly.graph_objects  # noqa: E402

plotly.graph_objects.Figure.show = lambda *args, **kwargs: None
files = {int(rank): path for rank, path in (word.split("=", 1) for word in sys.argv[3:])}
ranks = sorted(files)
job = TraceAnalysis(trace_files=dict(files), trace_dir="/")
out = out / label
out.mkdir(parents=True, exist_ok=True)


def write(name, make, index=False):
    """A table, unless HTA fails or has none."""
    try:
        table = make()
    except Exception as error:  # noqa: BLE001: any of them means that there is no table
        print(f"{name}: {type(error).__name__}: {error}")
        return
    if table is not None and len(table.columns):
        table.to_csv(out / f"{name}.csv", index=index)


quiet = {"visualize": False}
write("temporal_breakdown", lambda: job.get_temporal_breakdown(**quiet))
write("comm_comp_overlap", lambda: job.get_comm_comp_overlap(**quiet))
for name, more in (("default_top10", {}), ("all", {"num_kernels": 10**9})):
    both = {}

    def breakdown(more=more, both=both):
        both["types"], kernels = job.get_gpu_kernel_breakdown(**quiet, **more)
        return kernels

    write(f"kernel_breakdown_{name}", breakdown)
    write(f"kernel_type_breakdown_{name}", lambda both=both: both["types"])
for name, on_gpu in (("gpu", True), ("cpu", False)):
    for end, more in (("", {}), ("_top5", {"num_kernels": 5})):
        write(
            f"{name}_user_annotation_breakdown{end}",
            lambda on_gpu=on_gpu, more=more: job.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=on_gpu, **quiet, **more
            ),
        )
idle = {}


def idle_time():
    import pandas

    tables = [
        job.get_idle_time_breakdown(ranks=[rank], show_idle_interval_stats=True, **quiet)
        for rank in ranks
    ]
    idle["stats"] = pandas.concat([table[1] for table in tables])
    return pandas.concat([table[0] for table in tables])


write("idle_time_breakdown", idle_time)
write("idle_interval_stats", lambda: idle["stats"].rename_axis("idle_category"), index=True)
for name, memory in (("", True), ("_nomem", False)):
    for rank in ranks:
        write(
            f"cuda_kernel_launch_stats{name}_rank{rank}",
            lambda rank=rank, memory=memory: job.get_cuda_kernel_launch_stats(
                ranks=[rank], include_memory_events=memory, **quiet
            )[rank],
        )
for rank in ranks:
    write(
        f"queue_length_time_series_rank{rank}",
        lambda rank=rank: job.get_queue_length_time_series([rank])[rank].reset_index(),
    )
    write(
        f"memory_bw_time_series_rank{rank}",
        lambda rank=rank: job.get_memory_bw_time_series([rank])[rank],
    )
write("queue_length_summary", lambda: job.get_queue_length_summary(ranks), index=True)
write("memory_bw_summary", lambda: job.get_memory_bw_summary(ranks), index=True)
for most in (1024, 8):
    write(
        f"time_blocked_full_queue_max{most}",
        lambda most=most: job.get_time_spent_blocked_on_full_queue(
            job.get_queue_length_time_series(ranks), most
        ),
    )
steps = job.get_profiler_steps()
(out / "stragglers.json").write_text(json.dumps({"profiler_steps": [int(n) for n in steps]}))
with tempfile.TemporaryDirectory() as folder:
    for least in (1, 3):
        for operator in ("aten::add", "aten::linear", "aten::mm"):
            write(
                f"frequent_patterns_min{least}_{operator.replace('::', '_')}",
                lambda least=least, operator=operator: job.get_frequent_cuda_kernel_sequences(
                    operator_name=operator,
                    output_dir=folder,
                    min_pattern_len=least,
                    rank=ranks[0],
                    top_k=5,
                    visualize=False,
                ),
            )
for instance in (0, 1):
    try:
        graph, success = job.critical_path_analysis(
            rank=ranks[0], annotation="ProfilerStep", instance_id=instance
        )
    except Exception as error:  # noqa: BLE001
        print(f"critical_path_{instance}: {type(error).__name__}: {error}")
        continue
    edges = [graph.edges[u, v]["object"] for u, v in graph.edges]
    kinds = sorted({edge.type.value for edge in edges})
    of = {kind: [edge.weight for edge in edges if edge.type.value == kind] for kind in kinds}
    about = {
        "annotation": "ProfilerStep",
        "instance_id": instance,
        "rank": ranks[0],
        "success": bool(success),
        "edges": len(edges),
        "edge_types": {kind: len(weights) for kind, weights in of.items()},
        "edge_weight_by_type": {kind: float(sum(weights)) for kind, weights in of.items()},
    }
    if success:
        path = graph.critical_path_nodes
        on_path = [graph.edges[u, v]["object"].weight for u, v in zip(path, path[1:])]
        about["critical_path_nodes"] = len(path)
        about["critical_path_weight"] = float(sum(on_path))
        about["summary_pct"] = {key: float(part) for key, part in graph.summary().items()}
    (out / f"critical_path_{instance}.json").write_text(json.dumps(about, indent=1))
