"""Metrics are methods; their results are Arrow tables."""

import csv
import importlib.util
import io
import pathlib
import pickle
import subprocess
import sys

import pytest

import kymograph as ky
from kymograph import _command, _kymograph

METRICS = _kymograph.metrics()


def test_the_methods_are_those_of_the_registry():
    here = pathlib.Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location("generate", here / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    written = generate.TARGET.read_text(encoding="utf-8")
    assert written == generate.source(), "run python/generate.py"
    tables = generate.TABLES.read_text(encoding="utf-8")
    assert tables == generate.tables_source(), "run python/generate.py"


def test_options_name_metrics_that_exist():
    names = {name for name, *_ in METRICS}
    for option, metrics, _, _ in _kymograph.options():
        assert set(metrics) <= names, option


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric[0])
def test_every_metric_gives_its_columns_or_says_what_is_missing(job, metric):
    name, _, columns, compares = metric
    try:
        options = {"operator": "aten::"} if name == "frequent_sequences" else {}
        table = getattr(job, name)(*([job] if compares else []), **options)
    except ky.NoDataError as error:
        assert str(error)
        return
    assert table.name == name
    assert table.about == columns
    assert len(table) == len(table.to_pydict()[columns[0][0]])
    assert name in repr(table) and "<table>" in table._repr_html_()


def test_the_numbers_are_those_of_the_command(traces, job):
    for name in ["temporal_breakdown", "kernel_breakdown", "operators", "collectives"]:
        said = subprocess.run(
            [_command.path(), "analyze", name, str(traces), "--format", "csv"],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        expected = list(csv.reader(io.StringIO(said)))
        table = job.metric(name)
        assert table.column_names == expected[0]
        columns = [table[column] for column in table.column_names]
        kinds = [kind for _, kind, _, _ in table.about]
        of = {"int": int, "float": float, "str": str}
        for row, cells in enumerate(expected[1:]):
            for column, kind, cell in zip(columns, kinds, cells):
                assert column[row] == (None if cell == "" else of[kind](cell))
        assert len(table) == len(expected) - 1 > 0


def test_options_reach_the_metric(job):
    few = job.kernel_breakdown(num_kernels=1, duration_ratio=1.0)
    assert len(few) < len(job.kernel_breakdown(num_kernels=100, duration_ratio=1.0))
    assert job.temporal_breakdown(ranks=[1])["rank"] == [1]
    longest = job.kernel_breakdown(sort="sum", limit=3)["sum"]
    assert len(longest) == 3 and longest == sorted(longest, reverse=True)
    exact, rounded = job.idle_time(), job.idle_time(compat="hta")
    assert exact["idle_time"] != rounded["idle_time"]
    assert all(time % 1 == 0 for time in rounded["idle_time"])


def test_what_makes_no_sense_is_refused(job):
    with pytest.raises(TypeError, match="no option"):
        job.metric("temporal_breakdown", num_kernels=3)
    with pytest.raises(KeyError, match="no metric"):
        job.metric("nonsense")
    with pytest.raises(ValueError, match="no rank 9"):
        job.temporal_breakdown(ranks=[9])
    with pytest.raises(ValueError, match="sort|column"):
        job.temporal_breakdown(sort="nonsense")
    with pytest.raises(ValueError, match="num_kernels='many'"):
        job.kernel_breakdown(num_kernels="many")
    with pytest.raises(ValueError, match="compat"):
        job.idle_time(rounding=False)
    with pytest.raises(ValueError, match="^say which operator: operator=NAME$"):
        job.frequent_sequences()
    with pytest.raises(ky.NoDataError, match=r"\(say `annotation`, empty for all\)$"):
        job.critical_path(annotation="nonsense")
    with pytest.raises(TypeError, match="another Trace"):
        job.diff("other.json")
    with pytest.raises(KeyError, match="there are rank"):
        job.temporal_breakdown()["nonsense"]


def test_pyarrow_takes_a_table_without_a_copy(job):
    pyarrow = pytest.importorskip("pyarrow")
    table = job.kernel_breakdown()
    taken = pyarrow.table(table)
    assert taken.to_pydict() == table.to_pydict()
    assert taken.schema.field("sum").metadata[b"unit"] == b"ns"
    again = table.to_pyarrow()
    address = lambda t: t.column("sum").chunk(0).buffers()[1].address  # noqa: E731
    assert address(taken) == address(again)
    del table
    assert taken.equals(again), "it lives on"


def test_polars_takes_a_table(job):
    pytest.importorskip("polars")
    table = job.kernel_breakdown()
    assert table.to_polars().to_dict(as_series=False) == table.to_pydict()


def test_pandas_takes_a_table(job):
    pandas = pytest.importorskip("pandas")
    for name, _, _, compares in METRICS:
        try:
            if compares or name == "frequent_sequences":
                continue
            table = job.metric(name)
        except ky.NoDataError:
            continue
        frame = table.to_pandas()
        assert list(frame.columns) == table.column_names
        for column, kind, _, _ in table.about:
            taken = [None if pandas.isna(cell) else cell for cell in frame[column]]
            assert taken == table[column], (name, column)
            if kind != "str":
                assert frame[column].dtype.kind == {"int": "i", "float": "f"}[kind]


def test_html_escapes_names(tmp_path):
    event = '{"ph":"X","cat":"cpu_op","name":"<script>","ts":1,"dur":2,"pid":1,"tid":1}'
    (tmp_path / "t.json").write_text('{"traceEvents": [%s]}' % event)
    html = ky.load(tmp_path / "t.json").operators()._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_tables_cannot_be_pickled_by_accident(job):
    with pytest.raises(TypeError):
        pickle.dumps(job.temporal_breakdown())


def test_importing_imports_little():
    program = (
        "import sys; before = set(sys.modules); import kymograph; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    assert set(said) <= {"kymograph", "__future__"}


def test_options_are_called_as_in_python():
    for name, answers, columns, _ in METRICS:
        for text in (answers, *(meaning for _, _, _, meaning in columns)):
            assert "--" not in text, (name, text)
    meanings = [meaning for _, _, columns, _ in METRICS for _, _, _, meaning in columns]
    assert 'Yes or No, by compat="tensorboard"; null without' in meanings
