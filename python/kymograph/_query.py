"""Tables of events, and SQL over them."""

from __future__ import annotations

from . import _kymograph
from ._table import Table

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._trace import Trace

# In the order in which they are tried.
ENGINES = ("duckdb", "datafusion", "polars")
# `kymo query`, which is asked by its name only: its tables have other names of classes and times.
KYMO = "kymo"


class EventTable(Table):
    """A table with a row for each event, made when it is first looked at: `t.kernels`.

    Four names are metrics, too: `t.kernels(...)`, with parentheses, is the metric `kernels`.
    """

    _called: Callable[..., Table] | None = None

    def __call__(self, **options: Any) -> Table:
        """The metric of the same name."""
        if self._called is None:
            raise TypeError(f"{self.name} is a table: there is no metric of that name")
        return self._called(**options)


def query(trace: Trace, sql: str, engine: str | None) -> Table:
    """The answer to a query over the tables of a trace."""
    if engine is not None and engine not in (*ENGINES, KYMO):
        raise ValueError(f"engine is one of {', '.join((*ENGINES, KYMO))}, not {engine!r}")
    if engine == KYMO:
        return _kymo(trace, sql)
    import re

    module = _module([engine] if engine else ENGINES)
    # Only tables that the query names are made.
    named = {word.lower() for word in re.findall(r"\w+", sql)}
    tables: dict[str, Table]
    tables = {each[0]: trace._table(each[0]) for each in _kymograph.tables() if each[0] in named}
    names, columns = _RUNS[module.__name__](module, tables, sql)
    return Table(_kymograph.table_of("query", [_column(*each) for each in zip(names, columns)]))


def _module(engines: Any) -> Any:
    import importlib

    for name in engines:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            if error.name != name:
                raise
    raise ImportError(
        f"a query needs {' or '.join(engines)}: pip install kymograph[sql] brings DuckDB; "
        "`kymo query`, where it is installed, needs none"
    )


def _kymo(trace: Trace, sql: str) -> Table:
    """What `kymo query` answers about the files of a trace, as they are now."""
    import os
    import subprocess

    for path in trace.paths:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path}, of which the trace was loaded, is not there any more")
    # The query is read, so that no query is taken for a path, and no path for an option.
    command = [_program(), "query", "--format", "arrow", "--", *trace.paths]
    asked = subprocess.run(command, input=sql.encode(), capture_output=True)
    if asked.returncode:
        said = asked.stderr.decode(errors="replace").strip()
        raise _kymograph.Error(said.rpartition("kymo: ")[2] or f"{command[0]} failed")
    return Table(_kymograph.table_of_file("query", asked.stdout))


def _program() -> str:
    """What carries `kymo query` out: beside the package's `kymo`, or wherever programs are."""
    import os
    import shutil

    from . import _command

    name = "kymo-scale"
    found = shutil.which(name, path=os.path.dirname(_command.path())) or shutil.which(name)
    if found is None:
        raise ImportError(
            f'engine="{KYMO}" needs the program {name}, which is neither beside '
            f"{_command.path()} nor in a folder of PATH: `cargo build --release -p "
            "kymograph-scale --features query` makes it"
        )
    return found


def _duckdb(duckdb: Any, tables: dict[str, Table], sql: str) -> tuple[list[str], list[Any]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, _arrow(table))
        try:
            result = connection.execute(sql)
        except duckdb.Error as error:
            raise _kymograph.Error(f"the query failed: {error}") from error
        names = [column[0] for column in result.description]
        return names, _columns(result.fetchall(), len(names))


def _polars(polars: Any, tables: dict[str, Table], sql: str) -> tuple[list[str], list[Any]]:
    context = polars.SQLContext({name: table.to_polars() for name, table in tables.items()})
    try:
        frame = context.execute(sql, eager=True)
    except polars.exceptions.PolarsError as error:
        raise _kymograph.Error(f"the query failed: {error}") from error
    found = frame.to_dict(as_series=False)
    return list(found), list(found.values())


def _datafusion(datafusion: Any, tables: dict[str, Table], sql: str) -> tuple[list[str], list[Any]]:
    context = datafusion.SessionContext()
    for name, table in tables.items():
        context.from_arrow(table, name)
    try:
        result = context.sql(sql)
        found = result.to_pydict()
    except Exception as error:
        raise _kymograph.Error(f"the query failed: {error}") from error
    return [field.name for field in result.schema()], list(found.values())


_RUNS = {"duckdb": _duckdb, "polars": _polars, "datafusion": _datafusion}


def _arrow(table: Table) -> Any:
    """For versions of DuckDB that take tables of pyarrow's only, where that is installed."""
    try:
        import pyarrow
    except ImportError:
        return table
    return pyarrow.table(table)


def _columns(rows: list[Any], count: int) -> list[Any]:
    return [list(column) for column in zip(*rows)] if rows else [[] for _ in range(count)]


def _column(name: str, values: list[Any]) -> tuple[str, str, list[Any]]:
    """A column with its type, and its values as that."""
    from decimal import Decimal

    present = [value for value in values if value is not None]
    if all(isinstance(value, (int, Decimal)) for value in present):
        whole = all(value == int(value) and -(2**63) <= value < 2**63 for value in present)
        if whole:
            return name, "int", [None if value is None else int(value) for value in values]
    if all(isinstance(value, (int, float, Decimal)) for value in present):
        return name, "float", [None if value is None else float(value) for value in values]
    return name, "str", [None if value is None else str(value) for value in values]
