"""Writes kymograph/_metrics.py: a method for each metric, with its options and columns; and
kymograph/_tables.py: a property for each table of events. What they share is described once, at
their classes.

usage: PYTHONPATH=FOLDER python generate.py            (python/stage makes the folder)
"""

import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
# Python looks beside the script first, where the package lies without its native part.
sys.path = [path for path in sys.path if pathlib.Path(path).resolve() != HERE]

from kymograph import _kymograph  # noqa: E402

TARGET = HERE / "kymograph" / "_metrics.py"
TABLES = HERE / "kymograph" / "_tables.py"

HEAD = '''"""The metrics of `kymo analyze` as methods. Made by python/generate.py: do not edit."""

from __future__ import annotations

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._table import Table
    from ._trace import Trace


class Metrics:
    """A method for each metric. An option that is None has its default.

    Options of every metric:
{common}
    """

    def _metric(self, name: str, **options: Any) -> Table:
        raise NotImplementedError

    def _compare(self, name: str, other: Trace, **options: Any) -> Table:
        raise NotImplementedError
'''


def wrapped(text: str, indent: str, hanging: str = "") -> str:
    return textwrap.fill(
        text, 98, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    )


def described(pairs, indent: str) -> list:
    """Lines that say what options or columns mean."""
    return [wrapped(f"{name}: {text}", indent + "  ", "  ") for name, text in pairs]


def columns_of(columns, indent: str) -> list:
    kinds = ((c, f"{ty}, {unit}" if unit else ty, meaning) for c, ty, unit, meaning in columns)
    return described(((f"{c} ({kind})", meaning) for c, kind, meaning in kinds), indent)


def method(name, answers, columns, compares, options) -> str:
    own = [spec for spec in options if not spec[1] or name in spec[1]]
    lines = ["", f"    def {name}(", "        self,"]
    if compares:
        lines += ["        other: Trace,"]
    lines += ["        *,"]
    lines += [f"        {option}: {ty} | None = None," for option, _, ty, _ in own]
    lines += ["    ) -> Table:", wrapped(f'"""{answers[:1].upper()}{answers[1:]}.', " " * 8), ""]
    if compares:
        lines += ["        Compares `other` with this one, the base.", ""]
    particular = [(option, text) for option, metrics, _, text in own if metrics]
    lines += ["        Options, beside those of every metric (see `Metrics`):"] if particular else []
    lines += described(particular, " " * 8) + [""] * bool(particular)
    lines += ["        Columns:", *columns_of(columns, " " * 8)]
    lines += ['        """']
    call = f'self._compare("{name}", other,' if compares else f'self._metric("{name}",'
    lines += [f"        return {call}"[:-1] + ","]
    lines[-1] = lines[-1].replace("(", "(\n            ", 1)
    if compares:
        lines[-1] = lines[-1].replace(", other", ",\n            other")
    lines += [f"            {option}={option}," for option, _, _, _ in own]
    return "\n".join(lines + ["        )"]) + "\n"


def source() -> str:
    options = _kymograph.options()
    common = [(option, text) for option, metrics, _, text in options if not metrics]
    head = HEAD.format(common="\n".join(described(common, " " * 4)))
    return head + "".join(method(*metric, options) for metric in _kymograph.metrics())


TABLES_HEAD = '''"""Tables of events as properties. Made by python/generate.py: do not edit."""

from __future__ import annotations

from ._metrics import Metrics

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._query import EventTable


class Tables(Metrics):
    """A table for each kind of event, of all ranks. It is made when it is first looked at.

    Columns that several have:
{common}
    """

    def _table(self, name: str) -> EventTable:
        raise NotImplementedError
'''


def table_property(name, rows, columns, metrics, shared) -> str:
    called = metrics.get(name)
    ignored = "  # pyright: ignore[reportIncompatibleMethodOverride]" if called else ""
    lines = ["", "    @property", f"    def {name}(self) -> EventTable:{ignored}"]
    lines += [wrapped(f'"""A row for each {rows}.', " " * 8), ""]
    if called:
        lines += [wrapped(f"`t.{name}(...)` is the metric: {called}.", " " * 8), ""]
    own = [column for column in columns if column not in shared]
    names = ", ".join(f"`{column[0]}`" for column in columns if column in shared)
    lines += [wrapped(f"Columns: {names}, as above, and" if own else f"Columns: {names}.", " " * 8)]
    lines += columns_of(own, " " * 8)
    return "\n".join([*lines, '        """', f'        return self._table("{name}")']) + "\n"


def tables_source() -> str:
    metrics = {name: answers for name, answers, _, _ in _kymograph.metrics()}
    tables = _kymograph.tables()
    all_columns = [column for _, _, columns in tables for column in columns]
    shared = [c for n, c in enumerate(all_columns) if all_columns.count(c) > 1 and c not in all_columns[:n]]
    head = TABLES_HEAD.format(common="\n".join(columns_of(shared, " " * 4)))
    return head + "".join(table_property(*table, metrics, shared) for table in tables)


if __name__ == "__main__":
    TABLES.write_text(tables_source(), encoding="utf-8")
    TARGET.write_text(source(), encoding="utf-8")
