"""What workers do for each trace, and what becomes of their answers."""

from __future__ import annotations

from .. import _kymograph
from .._table import Table

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple, Optional, Union
else:
    from collections import namedtuple


if TYPE_CHECKING:

    class Rank(NamedTuple):
        """What a worker says about a rank."""

        path: str
        # The rank, how many there are, when it begins (nanoseconds since 1970).
        place: tuple[int, Optional[int], Optional[int]]
        # When it begins by the trace's own clock.
        origin: int
        # For each metric the table, as Arrow's stream, or why there is none.
        tables: list[tuple[Optional[bytes], Optional[str]]]

    class Unread(NamedTuple):
        """What a worker says about a trace that cannot be taken."""

        path: str
        why: str

    Answer = list[Union[Rank, Unread]]
else:
    Rank = namedtuple("Rank", "path place origin tables")
    Unread = namedtuple("Unread", "path why")


class Task:
    """What a worker does with a trace and its number. It can be repeated, anywhere."""

    def __init__(self, names: list[str], options: dict[str, Any], damaged: bool) -> None:
        self.names = names
        self.options = options
        self.damaged = damaged

    def __call__(self, item: tuple[int, str]) -> Answer:
        """Raises only what may be different the next time, so that engines repeat just that."""
        number, path = item
        try:
            ranks = _kymograph.rank_tables(path, number, self.names, self.options, self.damaged)
        except (_kymograph.Error, FileNotFoundError, IsADirectoryError, PermissionError) as error:
            return [Unread(path, str(error))]
        return [Rank(path, *rank) for rank in ranks]


def gather(answers: list[Answer]) -> Answer:
    """One answer of several: a node of the tree."""
    return [one for answer in answers for one in answer]


class Ranks:
    """The answers of all workers, if they are one job."""

    def __init__(self, answers: Answer, whole: bool, partial: bool) -> None:
        self.ranks = sorted(
            (answer for answer in answers if isinstance(answer, Rank)),
            key=lambda rank: (rank.place[0], rank.path),
        )
        wrong, missing = _kymograph.job_problems([(rank.path, rank.place) for rank in self.ranks])
        if wrong:
            raise ValueError("; ".join(wrong))
        lacks = sorted(answer.why for answer in answers if isinstance(answer, Unread))
        if missing and whole:
            lacks.append(missing)
        if not lacks:
            return
        if not partial or not self.ranks:
            more = "; partial=True goes on with the others" if self.ranks else ""
            raise _kymograph.Error("; ".join(lacks) + more)
        for why in lacks:
            _warn(f"left out: {why}")

    def tables(self, names: list[str], options: dict[str, Any]) -> dict[str, Table]:
        return {name: self._table(at, name, options) for at, name in enumerate(names)}

    def _table(self, at: int, name: str, options: dict[str, Any]) -> Table:
        parts: list[tuple[int, int, bytes]] = []
        without: list[str] = []
        for rank in self.ranks:
            table, why = rank.tables[at]
            if table is not None:
                parts.append((rank.place[0], rank.origin, table))
            else:
                without.append(f"{name}: {why}")
        if not parts:
            asked = options.get("ranks")
            why = f"there is no rank of {list(asked)} in the traces" if asked else "no traces"
            raise _kymograph.NoDataError(without[0] if without else why)
        for why in without:
            _warn(f"left out: {why}")
        return Table(_kymograph.combined(name, parts, options))


def _warn(what: str) -> None:
    import warnings

    # From here to the program: by `__init__`.
    warnings.warn(what, RuntimeWarning, stacklevel=4)
