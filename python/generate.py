"""Writes kymograph/_metrics.py: a method for each metric, with its options and columns; and
kymograph/_tables.py: a property for each table of events.

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
    """A method for each metric. An option that is None has its default."""

    def _metric(self, name: str, **options: Any) -> Table:
        raise NotImplementedError

    def _compare(self, name: str, other: Trace, **options: Any) -> Table:
        raise NotImplementedError
'''


def wrapped(text: str, indent: str, hanging: str = "") -> str:
    return textwrap.fill(
        text, 98, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    )


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
    lines += ["        Options:"]
    for option, _, _, text in own:
        lines += [wrapped(f"{option}: {text}", " " * 8 + "  ", "  ")]
    lines += ["", "        Columns:"]
    for column, ty, unit, meaning in columns:
        kind = f"{ty}, {unit}" if unit else ty
        lines += [wrapped(f"{column} ({kind}): {meaning}", " " * 8 + "  ", "  ")]
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
    return HEAD + "".join(method(*metric, options) for metric in _kymograph.metrics())


TABLES_HEAD = '''"""Tables of events as properties. Made by python/generate.py: do not edit."""

from __future__ import annotations

from ._metrics import Metrics

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._query import EventTable


class Tables(Metrics):
    """A table for each kind of event, of all ranks. It is made when it is first looked at."""

    def _table(self, name: str) -> EventTable:
        raise NotImplementedError
'''


def table_property(name, rows, columns, metrics) -> str:
    called = metrics.get(name)
    ignored = "  # pyright: ignore[reportIncompatibleMethodOverride]" if called else ""
    lines = ["", "    @property", f"    def {name}(self) -> EventTable:{ignored}"]
    lines += [wrapped(f'"""A row for each {rows}.', " " * 8), ""]
    if called:
        lines += [wrapped(f"`t.{name}(...)` is the metric: {called}.", " " * 8), ""]
    lines += ["        Columns:"]
    for column, ty, unit, meaning in columns:
        kind = f"{ty}, {unit}" if unit else ty
        lines += [wrapped(f"{column} ({kind}): {meaning}", " " * 8 + "  ", "  ")]
    return "\n".join([*lines, '        """', f'        return self._table("{name}")']) + "\n"


def tables_source() -> str:
    metrics = {name: answers for name, answers, _, _ in _kymograph.metrics()}
    tables = (table_property(*table, metrics) for table in _kymograph.tables())
    return TABLES_HEAD + "".join(tables)


if __name__ == "__main__":
    TABLES.write_text(tables_source(), encoding="utf-8")
    TARGET.write_text(source(), encoding="utf-8")
