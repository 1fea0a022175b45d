"""Traces that were loaded."""

from __future__ import annotations

import os

from . import _kymograph
from ._metrics import Metrics
from ._query import EventTable, query
from ._table import Table
from ._tables import Tables

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Word = Union[str, os.PathLike[str]]


class Trace(Tables):
    """Traces in memory, by rank; `load` makes them. Each metric of `kymo analyze` is a method, and
    each kind of event a table (`t.kernels`), for `query` as well.

    It never changes, so any thread may use it; methods release the interpreter's lock.
    """

    def __init__(self, loaded: _kymograph.Loaded) -> None:
        self._loaded = loaded
        self._made: dict[str, EventTable] = {}

    @property
    def ranks(self) -> list[int]:
        """The numbers of the ranks, from the smallest on."""
        return self._loaded.ranks

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [os.fspath(path) for path in self._loaded.paths]

    @property
    def warnings(self) -> list[str]:
        """What could not be read of the files, and what was lost while recording: sentences."""
        return self._loaded.warnings

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the traces take."""
        return self._loaded.nbytes

    def counts(self, rank: int | None = None) -> dict[str, int]:
        """How many slices, activities of devices, threads and so on the trace of a rank has;
        without a rank, of the first one. A ValueError if there is no such rank."""
        return self._loaded.counts(self.ranks[0] if rank is None else rank)

    def events(self, rank: int | None = None) -> Table:
        """All slices of the host and all work of devices, of a rank or of the first one: a row for
        each, by track and then by time. `parent` is the row of the slice around it, on the same
        thread, track or asyncio task: the innermost that ends no earlier. It is null for scopes of
        several tasks of one name that run at once. Times are nanoseconds from the first event of
        the trace."""
        return Table(_kymograph.events(self._loaded, self.ranks[0] if rank is None else rank))

    def query(self, sql: str, engine: str | None = None) -> Table:
        """The answer to a query in SQL over the tables of events (`kernels`, `operators` …).

        t.query("select name, sum(dur) as dur from kernels group by name order by dur desc")

        It is computed by DuckDB, DataFusion or Polars, the first of them that is installed, or by
        the one that `engine` names ("duckdb", "datafusion", "polars"): `pip install
        kymograph[sql]` brings DuckDB. Whole numbers that fit into 64 bits stay whole; other
        numbers are floats; everything else is text.

        With `engine="kymo"` it is `kymo query` that reads the files once more and answers, with
        its own tables, views and functions: classes are in small letters there, and times are
        those of the traces' clock.

        Raises ImportError if none is installed, and Error for a query that it refuses;
        FileNotFoundError if "kymo" is to read a file that is not there any more.
        """
        return query(self, sql, engine)

    def metric(self, name: str, **options: Any) -> Table:
        """The table of a metric by name: what the method of that name gives."""
        return self._metric(name, **options)

    def _table(self, name: str) -> EventTable:
        if name not in self._made:
            table = EventTable(_kymograph.table(self._loaded, name))
            metric = getattr(Metrics, name, None)
            if metric is not None:
                table._called = metric.__get__(self)
            self._made.setdefault(name, table)
        return self._made[name]

    def _metric(self, name: str, **options: Any) -> Table:
        return Table(_kymograph.metric(self._loaded, name, options))

    def _compare(self, name: str, other: Trace, **options: Any) -> Table:
        if not isinstance(other, Trace):
            raise TypeError(f"{name} compares with another Trace, not {type(other).__name__}")
        return Table(_kymograph.compare(name, self._loaded, other._loaded, options))

    def __repr__(self) -> str:
        files, ranks = len(self.paths), len(self.ranks)
        size = f"{self.nbytes / 1e6:.1f} MB"
        warned = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"<Trace: {_count(ranks, 'rank')} of {_count(files, 'file')}, {size}{warned}>"


def load(*traces: Word, progress: bool | None = None) -> Trace:
    """Reads traces into memory: Perfetto's, Kineto's and Chrome's JSON, plain or packed.

    `traces` are files, folders, or patterns with `*` in the last part of a path; several are the
    ranks of one job. Ranks are told from the content; where nothing tells, files are numbered in
    their order. Files are read at the same time by as many threads as there are cores.

    `progress` says whether a load that takes longer than a second shows how far it is: in a
    notebook as a bar, elsewhere on stderr. Without it, in notebooks and if stderr is a terminal.
    Ctrl-C ends a load.

    Raises FileNotFoundError for what is not there, Error for a file that is no trace, and
    ValueError if two files are the same rank.
    """
    if not traces:
        raise TypeError("say which trace: a file, a folder or a pattern")
    words = [os.fspath(word) for word in traces]
    from . import _progress

    bar = _progress.bar(progress)
    try:
        return Trace(_kymograph.load(words, bar))
    finally:
        if bar is not None:
            bar.close()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
