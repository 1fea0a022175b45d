"""Looks like PyTorch to those who switch its profiler on, and to nobody else.

FAKE_TORCH_LOG names a file that gets a line for everything that happens. With
FAKE_TORCH_BROKEN the import fails halfway; FAKE_TORCH_CPU makes it a build without CUDA.
"""

import os

from torch import _log
from torch.version import __version__

import torch._C

if os.environ.get("FAKE_TORCH_BROKEN"):
    raise ImportError("libtorch_cpu.so: cannot open shared object file")

from torch import autograd, optim, version

_log.line("importing")


def add():
    """An operator."""
    autograd.operator("aten::add")


_log.line("imported")
