"""Kymograph: records what programs on CPUs and accelerators do, and says what traces say.

    import kymograph as ky

    with ky.record("run.pftrace"):          # or under `kymo record`, without this line
        with ky.scope("load", rows=3):
            ...

    t = ky.load("runs/exp1/*.pftrace")      # or Kineto's JSON, a folder, ranks together
    t.temporal_breakdown()                  # every metric of `kymo analyze` is a method
    t.kernel_breakdown(num_kernels=5).to_pandas()

Errors: `Error` and, where the traces do not have what was asked for, `NoDataError`; a file that is
not there is a `FileNotFoundError`, a value that makes no sense a `ValueError`.
"""

from ._kymograph import Error, NoDataError, __version__
from ._profile import (
    ProfilerAction,
    ProfilerActivity,
    patch_torch_profiler,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
    trace_handler,
)
from ._record import (
    Flow,
    Recording,
    Summary,
    arm,
    async_scope,
    counter,
    dump,
    flight_recorder,
    flow,
    instant,
    is_recording,
    process_name,
    record,
    scope,
    step,
    thread_name,
    trace,
)
from ._table import Table
from ._trace import Trace, load

__all__ = [
    "Error",
    "Flow",
    "NoDataError",
    "ProfilerAction",
    "ProfilerActivity",
    "Recording",
    "Summary",
    "Table",
    "Trace",
    "__version__",
    "arm",
    "async_scope",
    "counter",
    "dump",
    "flight_recorder",
    "flow",
    "instant",
    "is_recording",
    "load",
    "patch_torch_profiler",
    "process_name",
    "profile",
    "record",
    "record_function",
    "schedule",
    "scope",
    "step",
    "supported_activities",
    "tensorboard_trace_handler",
    "thread_name",
    "trace",
    "trace_handler",
]
