#!/usr/bin/env python3
"""usage: beside_hta.py KYMO TRACE...

How long `kymo analyze` and HTA (HolisticTraceAnalysis or traceinsight, whichever is installed)
take for the same traces, whole processes in turns, the best of three: loading and HTA's metrics
one after the other in one process, and the critical path. TRACE are the ranks of one job.
Prints a table with the ratios, by the clock and by the processor time of all their processes,
which a busy machine changes less, and the peak memory of both.
"""

import os
import subprocess
import sys
import time

kymo, traces = sys.argv[1], [os.path.abspath(path) for path in sys.argv[2:]]
METRICS = """temporal_breakdown kernel_breakdown kernel_types user_annotations comm_comp_overlap
idle_time idle_intervals launch_stats queue_length queue_length_summary memory_bandwidth
memory_bandwidth_summary profiler_steps""".split()
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
files = {n: path for n, path in enumerate(sys.argv[2:])}
ranks = list(files)
job = TraceAnalysis(trace_files=files, trace_dir="/")
if sys.argv[1] == "metrics":
    job.get_temporal_breakdown(visualize=False)
    job.get_gpu_kernel_breakdown(visualize=False)
    job.get_gpu_user_annotation_breakdown(visualize=False)
    job.get_comm_comp_overlap(visualize=False)
    job.get_idle_time_breakdown(ranks=ranks, show_idle_interval_stats=True, visualize=False)
    job.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
    job.get_queue_length_time_series(ranks)
    job.get_queue_length_summary(ranks)
    job.get_memory_bw_time_series(ranks)
    job.get_memory_bw_summary(ranks)
    job.get_profiler_steps()
else:
    job.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
"""


def run(command):
    """Seconds by the clock and of processors, and MiB, of a whole process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} ended with {status}")
    used = usage.ru_utime + usage.ru_stime
    return time.monotonic() - began, used, usage.ru_maxrss / 1024


def best(command):
    runs = [run(command) for _ in range(int(os.environ.get("ROUNDS", "3")))]
    return min(run[0] for run in runs), min(run[1] for run in runs), max(run[2] for run in runs)


size = sum(os.path.getsize(path) for path in traces) / 1e6
print(f"{len(traces)} traces, {size:.1f} MB as they lie, {os.cpu_count()} cores")
print(f"{'':16}{'seconds by the clock':>28}{'of processors':>28}{'MiB':>14}")
print(f"{'':16}" + f"{'kymo':>10}{'HTA':>10}{'ratio':>8}" * 2 + f"{'kymo':>7}{'HTA':>7}")
for what, ours in (
    ("metrics", [kymo, "analyze", ",".join(METRICS), *traces, "--format", "csv"]),
    ("critical path", [kymo, "analyze", "critical_path_edges", traces[0], "--format", "csv"]),
):
    own = best(ours)
    theirs = best([sys.executable, "-c", HTA, what, *traces])
    line = f"{what:16}"
    for ours, other in zip(own[:2], theirs[:2]):
        line += f"{ours:10.3f}{other:10.3f}{other / ours:8.1f}"
    print(f"{line}{own[2]:7.0f}{theirs[2]:7.0f}", flush=True)
