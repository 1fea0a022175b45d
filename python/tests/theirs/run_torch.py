#!/usr/bin/env python3
"""PyTorch's own tests of its profiler's public interface, against `kymograph.profile`.

usage: PYTHONPATH=FOLDER python theirs/run_torch.py TEST_PROFILER_PY [PYTEST-ARGUMENT…]

FOLDER has the package (python/stage makes it) and pytest; TEST_PROFILER_PY is PyTorch's
test/profiler/test_profiler.py, of the version that this Python has. What `torch.profiler` exports is
replaced, and `torch.autograd.profiler.profile`, which the tests use as an older spelling of the
same. What they pass that is Kineto's own (`use_kineto`, `experimental_config`) is left out. The
tests want what operators are called with, which the first recording of a process decides.
"""

import sys
import tempfile

# Keywords of torch.autograd.profiler.profile that say nothing about what is recorded.
IGNORED = ("use_kineto", "use_cpu", "use_device", "experimental_config", "enabled")


def replace():
    import torch.autograd.profiler as old
    import torch.profiler as new

    import kymograph as ky

    class profile(ky.profile):
        def __init__(self, *args, **options):
            options = {name: value for name, value in options.items() if name not in IGNORED}
            super().__init__(*args, **options)

        # Of the older spelling.
        @property
        def function_events(self):
            return self.events()

        def __str__(self):
            return str(self.events())

    with tempfile.TemporaryDirectory() as folder:
        ky.record(f"{folder}/t.pftrace", pytorch="shapes").stop()
    old.profile = new.profile = profile
    for name in ("ProfilerAction", "ProfilerActivity", "record_function", "schedule",
                 "supported_activities", "tensorboard_trace_handler"):
        for module in (new, new.profiler):
            if hasattr(module, name):
                setattr(module, name, getattr(ky, name))
    old.record_function = ky.record_function
    new.kineto_available = lambda: True


if __name__ == "__main__":
    import pytest

    replace()
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
