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

from __future__ import annotations

from ._kymograph import Error, NoDataError, __version__
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

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

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


_PROFILE = (
    "ProfilerAction",
    "ProfilerActivity",
    "patch_torch_profiler",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "trace_handler",
)


def __getattr__(name: str) -> Any:
    """What few programs use is imported when they do."""
    if name not in _PROFILE:
        raise AttributeError(f"module 'kymograph' has no attribute '{name}'")
    from . import _profile

    globals().update({each: getattr(_profile, each) for each in _PROFILE})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_PROFILE})


def logging_handler(level: int = 0, category: str = "logging") -> logging.Handler:
    """A handler for `logging` that has log records be moments in the trace.

    logging.getLogger().addHandler(ky.logging_handler(logging.INFO))
    """
    from . import _bridges

    return _bridges.LoggingHandler(level, category)


def otel_span_processor(category: str = "opentelemetry") -> Any:
    """A span processor for OpenTelemetry's SDK: spans are ranges in the trace.

    provider.add_span_processor(ky.otel_span_processor())
    """
    from . import _bridges

    return _bridges.span_processor(category)


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
    "logging_handler",
    "otel_span_processor",
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
