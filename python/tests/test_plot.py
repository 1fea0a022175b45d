"""Tables become pictures that stand alone."""

import xml.etree.ElementTree

import pytest

import kymograph as ky
from kymograph import _kymograph

SVG = "{http://www.w3.org/2000/svg}"


def drawn(plot):
    """The picture as XML. It fetches nothing."""
    text = str(plot)
    assert text.count("http") == 1 and "<script" not in text
    return xml.etree.ElementTree.fromstring(text)


def test_every_metric_can_be_drawn(job):
    drawn_metrics = 0
    for name, _, _, compares in _kymograph.metrics():
        if compares:
            continue
        options = {"operator": "aten::"} if name == "frequent_sequences" else {}
        try:
            table = job.metric(name, **options)
            picture = table.plot()
        except ky.NoDataError:
            continue
        except ValueError as error:
            assert "no column of amounts" in str(error) or "no values" in str(error), name
            continue
        drawn(picture)
        drawn_metrics += 1
    assert drawn_metrics > 20


def test_bars_are_as_long_as_their_values(job):
    table = job.kernel_breakdown(num_kernels=5)
    root = drawn(table.plot("name", "sum"))
    bars = [float(bar.get("width")) for bar in root.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    values = sorted(table["sum"], reverse=True)[:20]
    assert len(bars) == len(values)
    assert [bar / bars[0] for bar in bars] == pytest.approx([v / values[0] for v in values], abs=1e-3)


def test_lines_have_a_series_for_each_stream(job):
    root = drawn(job.queue_length().plot())
    assert len([p for p in root.iter(f"{SVG}path") if p.find(f"{SVG}title") is not None]) >= 2


def test_wrong_columns_say_so(job, tmp_path):
    table = job.kernels()
    with pytest.raises(KeyError, match="beauty"):
        table.plot(y="beauty")
    with pytest.raises(ValueError, match="texts"):
        table.plot(y="name")
    plot = table.plot()
    plot.save(tmp_path / "t.html")
    plot.save(tmp_path / "t.svg")
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")
    assert plot._repr_svg_() == (tmp_path / "t.svg").read_text()
