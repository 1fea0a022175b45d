"""Metrics over the ranks of jobs that are too large for one process, on engines that exist.

    from kymograph import scale

    scale.analyze("stragglers", "traces/")                          # processes of this machine
    scale.analyze("stragglers", "/shared/traces/", engine="dask")   # the cluster of your Client
    scale.analyze("stragglers", "/shared/traces/", engine="ray")    # that of your ray.init()
    scale.analyze("stragglers", "/shared/traces/", engine="spark")  # that of your SparkSession

Each rank is a task of its own: a worker reads the trace and sends back what the metric gives for
that rank, which is small. These answers are gathered as a tree, and become one table here. Workers
need this package and see the traces under the same paths; schedulers, retries, memory limits and
encryption are the engine's.
"""

from __future__ import annotations

import os

from .. import _kymograph
from .._table import Table
from ._ranks import Ranks, Task, gather

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union, overload

    Names = Union[list[str], tuple[str, ...]]
    Word = Union[str, os.PathLike[str]]

# Each has a module here with a function `run`: the seam between metrics and engines.
ENGINES = ("local", "ray", "dask", "spark")
# How many answers a task of the tree takes.
FAN_IN = 16

if TYPE_CHECKING:

    @overload
    def analyze(metrics: str, *traces: Word, **options: Any) -> Table: ...

    @overload
    def analyze(metrics: Names, *traces: Word, **options: Any) -> dict[str, Table]: ...


def analyze(
    metrics: str | Names,
    *traces: Word,
    engine: str = "local",
    session: Any = None,
    workers: int | None = None,
    partial: bool = False,
    damaged: bool = False,
    **options: Any,
) -> Any:
    """The table of a metric over all ranks of a job; of several metrics a dictionary, for which
    each trace is read once. They are the tables of `kymograph.load(...)` and its methods, value by
    value, with the same `options`, without all traces in one memory.

    `traces` are files, folders or patterns, as `kymograph.load` takes them; several are the ranks
    of one job. `engine` is "local", "ray", "dask" or "spark". `session` is your
    `distributed.Client` or `SparkSession`; without it, the one that is current. `workers` is the
    number of processes of "local"; without it, as many as there are processors.

    Raises Error, before there is any table, if a trace cannot be read, its end is missing, or ranks
    of the job are missing: `damaged=True` takes what is there of a trace without an end, and
    `partial=True` goes on with the other ranks, and warns about each that is left out. Raises
    ValueError if two traces are the same rank or are not of one job, and NoDataError if no rank has
    what the metric is about.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise TypeError("say which metric")
    if engine not in ENGINES:
        raise ValueError(f"engine is one of {', '.join(ENGINES)}, not {engine!r}")
    if workers is not None and (engine != "local" or workers < 1):
        raise ValueError('workers is a number above 0, and goes with engine="local"')
    if session is not None and engine not in ("dask", "spark"):
        raise ValueError('session goes with engine="dask" and engine="spark"')
    _kymograph.check_metrics(names, options)
    for word in traces:
        if os.path.isfile(os.path.join(word, "kymograph-dataset.json")):
            what = f"`kymo analyze {names[0]} {os.fspath(word)}` asks it"
            raise ValueError(f"{os.fspath(word)} is a data set, which needs no cluster: {what}")
    paths = [os.fspath(path) for path in _kymograph.trace_files([os.fspath(w) for w in traces])]
    if not paths:
        raise TypeError("say which trace: a file, a folder or a pattern")
    run = _engine(engine)
    task = Task(names, options, damaged)
    answers = run(task, list(enumerate(paths)), gather, FAN_IN, session, workers)
    tables = Ranks(answers, whole=not options.get("ranks"), partial=partial).tables(names, options)
    return tables[names[0]] if isinstance(metrics, str) else tables


def _engine(name: str) -> Any:
    """The function `run` of an engine. It gets a task and the items it is for, what makes one
    answer of several, and of how many at a time; what the user passed as `session` and `workers`.
    It gives the answer for all items, in any order."""
    import importlib

    try:
        return importlib.import_module(f"{__name__}._{name}").run
    except ImportError as error:
        package = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}.get(name, name)
        raise ImportError(f'engine="{name}" needs {package}: {error}') from error


__all__ = ["ENGINES", "analyze"]
