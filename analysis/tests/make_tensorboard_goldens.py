#!/usr/bin/env python3
"""usage: make_tensorboard_goldens.py OUT_FOLDER WORKER=TRACE...

Has the TensorBoard plugin, torch-tb-profiler 0.4.3, parse the traces of the workers of a run, and
writes the views that analysis/tests/goldens compares with ours to OUT_FOLDER/as_is. Tried with

    pip install torch-tb-profiler==0.4.3 pandas==2.2.3 numpy==2.2.6
"""

import json
import pathlib
import sys
import tempfile

from torch_tb_profiler.profiler.data import DistributedRunProfileData, RunProfileData
from torch_tb_profiler.profiler.loader import RunLoader
from torch_tb_profiler.profiler.run_generator import RunGenerator
from torch_tb_profiler.run import DistributedRunProfile, RunProfile

out = pathlib.Path(sys.argv[1]) / "as_is"
out.mkdir(parents=True, exist_ok=True)


def write(name, make):
    """A view, unless the plugin has none or fails."""
    try:
        view = make()
    except Exception as error:  # noqa: BLE001: any of them means that there is no view
        print(f"{name}: {type(error).__name__}: {error}")
        return
    if view:
        (out / f"{name}.json").write_text(json.dumps(view, separators=(",", ":")) + "\n")


profiles, shares = [], []
for worker, path in (word.split("=", 1) for word in sys.argv[2:]):
    with tempfile.TemporaryDirectory() as cache:
        data = RunProfileData.parse(worker, None, path, cache)
    profile: RunProfile = RunGenerator(worker, None, data).generate_run_profile()
    profiles.append(profile)
    shares.append(DistributedRunProfileData(data))
    overview = {
        "recommendations_list": data.recommendations,
        "steps_names": data.steps_names,
        "steps_costs": [costs.costs for costs in data.steps_costs],
        "avg_costs": data.avg_costs.costs,
    }
    write(f"{worker}.overview", lambda: overview)
    write(f"{worker}.operator_by_name", lambda: profile.operation_table_by_name)
    write(f"{worker}.operator_by_name_input", lambda: profile.operation_table_by_name_input)
    write(f"{worker}.kernel_by_name", lambda: profile.kernel_table)
    write(f"{worker}.kernel_by_properties_and_op", lambda: profile.kernel_op_table)
    if profile.memory_snapshot:
        write(f"{worker}.memory_stats", profile.get_memory_stats)
        write(f"{worker}.memory_curve", lambda: profile.get_memory_curve("ms", "MB"))
        write(f"{worker}.memory_events", profile.get_memory_events)
    write(f"{worker}.modules", profile.get_module_view)
if len(profiles) > 1:
    write("diff.first_vs_second", lambda: profiles[0].compare_run(profiles[1]).get_diff_tree_summary())


def distributed():
    loader = RunLoader.__new__(RunLoader)
    loader.run_name = "run"
    view: DistributedRunProfile = loader._process_distributed_profiles(shares, None)
    keys = ("gpu_info", "steps_to_overlap", "steps_to_wait", "comm_ops")
    return view and {key: getattr(view, key) for key in keys}


write("ALL.distributed.spandefault", distributed)
