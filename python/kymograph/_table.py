"""Tables: the results of metrics."""

from __future__ import annotations


from . import _kymograph

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    import pandas
    import polars
    import pyarrow

    from ._plot import Plot

# Rows that `repr` shows.
_ROWS = 20


class Table(_kymograph.Table):
    """A table with columns of whole numbers, floats or texts; any cell may be null.

    Libraries of tables take it without a copy, by Arrow's PyCapsule interface: `pyarrow.table(t)`,
    `polars.from_arrow(t)`, and `duckdb.sql("select … from t")`. Times are whole nanoseconds;
    `about` says each column's unit and meaning. It never changes, so any thread may use it.
    """

    def to_pyarrow(self) -> pyarrow.Table:
        """The table as pyarrow has it, without a copy. Needs pyarrow (`kymograph[pyarrow]`)."""
        return _needed("pyarrow").table(self)

    def to_polars(self) -> polars.DataFrame:
        """The table as polars has it, without a copy. Needs polars (`kymograph[polars]`)."""
        polars = _needed("polars")
        taken = polars.from_arrow(self)
        # Polars 2 takes a stream of rows for a series of structs.
        return taken.struct.unnest() if isinstance(taken, polars.Series) else taken

    def to_pandas(self) -> pandas.DataFrame:
        """The table as pandas has it, whether or not pyarrow is there: whole numbers are `int64`,
        or `Int64` where some are null; floats are `float64`, null is NaN; texts are `object`,
        null is None. Needs pandas (`kymograph[pandas]`).
        """
        pandas = _needed("pandas")
        numpy = _needed("numpy")
        columns: dict[str, Any] = {}
        for name, kind, _, _ in self.about:
            raw = self.raw(name)
            if raw is None:
                columns[name] = numpy.array(self.column(name), dtype=object)
                continue
            values = numpy.frombuffer(raw[0], dtype="int64" if kind == "int" else "float64").copy()
            if raw[1] is not None:
                nulls = numpy.frombuffer(raw[1], dtype="bool")
                if kind == "int":
                    values = pandas.arrays.IntegerArray(values, nulls.copy())
                else:
                    values[nulls] = numpy.nan
            columns[name] = values
        return pandas.DataFrame(columns)

    def head(self, rows: int = 5) -> Table:
        """The first rows, without a copy."""
        return Table(self.slice(0, rows))

    def plot(self, x: str | None = None, y: str | Sequence[str] | None = None) -> Plot:
        """A picture: SVG that needs no network and no other package. Notebooks show it; `save`
        writes it as SVG or as a page.

        Tables with times (`ts`) are drawn as lines, a series for each rank, name or stream; others
        as bars, the longest first, of which 20 are shown. `x` is the column that names a bar or
        says where on the line; `y` the column that is drawn, of bars also several, end to end.
        """
        from . import _plot

        return _plot.plot(self, x, y)

    def __getitem__(self, column: str) -> list[Any]:
        """A column as a list; null is None."""
        return self.column(column)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"{self.name}: {rows} rows, {columns} columns\n{self.text(_ROWS)}"

    def _repr_html_(self) -> str:
        """For notebooks: plain HTML without scripts. Times are in nanoseconds."""
        from html import escape

        shown = self.head(_ROWS)
        numeric = [kind != "str" for _, kind, _, _ in self.about]
        cells = []
        for name, _, unit, meaning in self.about:
            label = escape(f"{name} [{unit}]" if unit else name)
            cells.append(f'<th title="{escape(meaning)}">{label}</th>')
        lines = [f"<tr>{''.join(cells)}</tr>"]
        for row in zip(*(shown.column(name) for name in self.column_names)):
            lines.append(f"<tr>{''.join(map(_cell, row, numeric))}</tr>")
        left = len(self) - len(shown)
        more = f"<p>and {left} more rows</p>" if left else ""
        body = "".join(lines)
        return f"<table><caption>{escape(self.name)}</caption>{body}</table>{more}"


def _cell(value: Any, numeric: bool) -> str:
    if value is None:
        return "<td></td>"
    if not numeric:
        from html import escape

        return f'<td style="text-align:left">{escape(value)}</td>'
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
    return f"<td>{text}</td>"


def _needed(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        what = f"this needs {name}: pip install {name}"
        raise ImportError(what, name=name) from error
