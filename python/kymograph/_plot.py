"""Tables as pictures: SVG that stands alone, without scripts, fonts or anything from a network."""

from __future__ import annotations

import os
from html import escape

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._table import Table

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5")
_WIDTH, _LABELS, _BAR, _HEIGHT = 860, 260, 20, 260
# Numbers that name something, and are not drawn as amounts.
_NAMES = ("rank", "index", "pid", "tid", "stream", "id", "correlation", "step", "device", "group")
# Most bars, and most lines.
_BARS, _LINES = 20, len(_COLOURS)


class Plot:
    """A picture of a table. A notebook shows it; `str()` is its SVG; `save` writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: SVG, or a page with it if the name ends in .html."""
        text = self.svg
        if os.fspath(path).endswith((".html", ".htm")):
            text = f'<!doctype html><meta charset="utf-8"><title>Kymograph</title>{text}\n'
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def plot(table: Table, x: str | None, y: str | Sequence[str] | None) -> Plot:
    """The picture of a table: see `Table.plot`."""
    kinds = {name: kind for name, kind, _, _ in table.about}
    units = {name: unit for name, _, unit, _ in table.about}
    wanted = [y] if isinstance(y, str) else list(y or ())
    for name in [*wanted, *([x] if x else [])]:
        if name not in kinds:
            raise KeyError(f"there is no column `{name}`; there are {', '.join(kinds)}")
    for name in wanted:
        if kinds[name] == "str":
            raise ValueError(f"the column `{name}` has texts, which have no height")
    amounts = [name for name, kind in kinds.items() if kind != "str" and name not in _NAMES]
    if x is None:
        x = "ts" if "ts" in kinds and len(amounts) > 1 else None
    if x is not None and kinds[x] != "str" and x not in _NAMES:
        rest = wanted or [name for name in amounts if name != x][-1:]
        if rest:
            return Plot(_lines(table, x, rest[0], units))
    if x is None:
        texts = [name for name, kind in kinds.items() if kind == "str" and any(table.column(name))]
        x = next(iter([*texts, *(name for name in _NAMES if name in kinds)]), None)
    if not wanted:
        times = [name for name in amounts if units[name] == "ns"]
        wanted = (times or amounts)[:1]
    if not wanted:
        raise ValueError("the table has no column of amounts to draw")
    return Plot(_bars(table, x, wanted, units))


def _shown(value: float | None, unit: str) -> str:
    """A value with its unit: times in what fits."""
    if value is None:
        return ""
    if unit == "ns":
        for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if abs(value) >= size:
                return f"{value / size:,.3g} {name}"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{text} {unit}".strip()


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'width="{_WIDTH}" height="{height:.0f}" role="img" font-family="sans-serif" '
        f'font-size="12" fill="#1b1e23"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>'
    )
    return f"{head}{_text(8, 18, title)}{''.join(parts)}</svg>"


def _legend(names: Sequence[str], y: float) -> list[str]:
    parts, x = [], 8.0
    for name, colour in zip(names, _COLOURS):
        parts.append(f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, y, name))
        x += 30 + 7 * len(name)
    return parts


def _bars(table: Table, x: str | None, wanted: list[str], units: dict[str, str]) -> str:
    """A bar for each row, of several columns beside each other in one."""
    columns = [table.column(name) for name in wanted]
    labels = table.column(x) if x else [str(n) for n in range(len(table))]
    rank = table.column("rank") if "rank" in table.column_names and x != "rank" else None
    ranks = len(set(rank)) > 1 if rank else False
    rows = sorted(
        range(len(table)),
        key=lambda row: 0 if x in _NAMES else -sum(abs(c[row] or 0) for c in columns),
    )
    shown = rows[:_BARS]
    sums = [sum(abs(column[row] or 0) for column in columns) for row in shown]
    scale = (_WIDTH - _LABELS - 110) / (max(sums, default=0) or 1)
    parts, y = [], 34.0
    for row, total in zip(shown, sums):
        label = f"{labels[row]}" if x not in _NAMES else f"{x} {labels[row]}"
        if ranks and rank:
            label += f" (rank {rank[row]})"
        if len(label) > 38:
            label = label[:35] + "…"
        parts.append(_text(_LABELS - 6, y + 14, label, "end"))
        at = float(_LABELS)
        for column, name, colour in zip(columns, wanted, _COLOURS):
            width = abs(column[row] or 0) * scale
            told = escape(f"{name}: {_shown(column[row], units[name])}")
            parts.append(
                f'<rect x="{at:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_BAR - 4}" '
                f'fill="{colour}"><title>{told}</title></rect>'
            )
            at += width
        parts.append(_text(at + 6, y + 14, _shown(total, units[wanted[0]])))
        y += _BAR
    if len(rows) > len(shown):
        y += 16
        parts.append(_text(_LABELS, y, f"and {len(rows) - len(shown)} more"))
    if len(wanted) > 1:
        y += 24
        parts += _legend(wanted[: len(_COLOURS)], y)
    return _svg(y + 14, f"{table.name}: {', '.join(wanted)}", parts)


def _lines(table: Table, x: str, y: str, units: dict[str, str]) -> str:
    """A line of steps for each series: a value holds until the next."""
    keys = [n for n in ("rank", "name", "stream", "id") if n in table.column_names and n not in (x, y)]
    keys = [name for name in keys if len(set(table.column(name))) > 1]
    series: dict[str, list[tuple[float, float]]] = {}
    rows: Any = zip(table.column(x), table.column(y), *(table.column(name) for name in keys))
    for at, value, *key in rows:
        if at is not None and value is not None:
            name = ", ".join(f"{n} {k}" for n, k in zip(keys, key)) or y
            series.setdefault(name, []).append((at, value))
    shown = dict(list(series.items())[:_LINES])
    points = [point for line in shown.values() for point in line]
    if not points:
        raise ValueError("the table has no values to draw")
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    low, high = min(0, min(p[1] for p in points)), max(p[1] for p in points)
    across = (_WIDTH - 100) / ((last - first) or 1)
    up = (_HEIGHT - 40) / ((high - low) or 1)
    parts = [
        f'<path d="M80 40V{_HEIGHT}H{_WIDTH - 20}" fill="none" stroke="#888"/>',
        _text(74, 46, _shown(high, units[y]), "end"),
        _text(74, _HEIGHT, _shown(low, units[y]), "end"),
        _text(80, _HEIGHT + 16, _shown(first, units[x])),
        _text(_WIDTH - 20, _HEIGHT + 16, _shown(last, units[x]), "end"),
    ]
    for (name, line), colour in zip(shown.items(), _COLOURS):
        line.sort()
        path, before = "", None
        for at, value in line:
            place = (80 + (at - first) * across, _HEIGHT - (value - low) * up)
            path += f"M{place[0]:.1f} {place[1]:.1f}" if before is None else f"H{place[0]:.1f}V{place[1]:.1f}"
            before = place
        told = f"<title>{escape(name)}</title>"
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}">{told}</path>')
    parts += _legend(list(shown), _HEIGHT + 38)
    if len(series) > len(shown):
        parts.append(_text(8, _HEIGHT + 56, f"and {len(series) - len(shown)} more"))
    return _svg(_HEIGHT + 64, f"{table.name}: {y}", parts)
