"""Kymograph: what traces of programs on CPUs and accelerators say.

    import kymograph as ky

    t = ky.load("runs/exp1/*.pftrace")      # or Kineto's JSON, a folder, ranks together
    t.temporal_breakdown()                  # every metric of `kymo analyze` is a method
    t.kernel_breakdown(num_kernels=5).to_pandas()

Errors: `Error` and, where the traces do not have what was asked for, `NoDataError`; a file that is
not there is a `FileNotFoundError`, a value that makes no sense a `ValueError`.
"""

from ._kymograph import Error, NoDataError, __version__
from ._table import Table
from ._trace import Trace, load

__all__ = ["Error", "NoDataError", "Table", "Trace", "__version__", "load"]
