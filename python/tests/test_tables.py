"""Events are tables, which SQL asks."""

import importlib.util
import json
import pathlib
import sys
import types

import pytest

import kymograph as ky
from kymograph import _kymograph, _query

TABLES = _kymograph.tables()


def test_the_properties_are_those_of_the_module():
    here = pathlib.Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location("generate", here / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    written = generate.TABLES.read_text(encoding="utf-8")
    assert written == generate.tables_source(), "run python/generate.py"


@pytest.mark.parametrize("name, rows, columns", TABLES, ids=[name for name, *_ in TABLES])
def test_every_table_has_its_columns(job, name, rows, columns):
    table = getattr(job, name)
    assert table.name == name and table.about == columns
    assert len(table) == len(table["rank"]) == table.shape[0]
    assert getattr(job, name) is table
    assert set(table["rank"]) <= set(job.ranks)


def test_the_events_are_those_of_the_trace(job):
    rank0 = job.events(0)
    devices = [device for device in rank0["device"] if device is not None]
    kernels = [rank for rank in job.kernels["rank"] if rank == 0]
    assert 0 < len(kernels) <= len(devices)
    assert {"COMPUTATION", "COMMUNICATION"} <= set(job.kernels["class"])
    assert "step" in job.steps.column_names and set(job.steps["step"]) == set(
        job.profiler_steps()["step"]
    )
    # What a rank does begins at the first event of all ranks, or later.
    assert min(job.operators["start"]) >= 0 and min(job.kernels["dur"]) >= 0
    depths = dict(zip(job.operators["depth"], job.operators["parent"]))
    assert depths[0] is None and all(depths[depth] for depth in depths if depth)
    calls = set(job.calls["correlation"]) - {None}
    launched = [number for number in job.kernels["correlation"] if number in calls]
    assert len(launched) > len(job.kernels) / 2
    launches = [kind for kind in job.flows["kind"] if kind == "launch"]
    assert launches


def test_four_names_are_metrics_as_well(job):
    metrics = {name for name, *_ in _kymograph.metrics()}
    both = [name for name, *_ in TABLES if name in metrics]
    assert sorted(both) == ["collectives", "counters", "kernels", "operators"]
    for name in both:
        called = getattr(job, name)(limit=2)
        assert called.column_names == job.metric(name, limit=2).column_names
        assert type(called) is ky.Table
    with pytest.raises(TypeError, match="no metric"):
        job.steps()


def test_what_a_query_answers_is_a_table():
    column = _query._column
    from decimal import Decimal

    assert column("a", [1, None, True]) == ("a", "int", [1, None, 1])
    assert column("a", [Decimal(5), 7]) == ("a", "int", [5, 7])
    assert column("a", [Decimal("1.5"), 7]) == ("a", "float", [1.5, 7.0])
    assert column("a", [2**70]) == ("a", "float", [float(2**70)])
    assert column("a", ["x", None, 3]) == ("a", "str", ["x", None, "3"])
    assert column("a", []) == ("a", "int", [])
    table = _kymograph.table_of("query", [column("n", [1, None]), column("s", ["x", "y"])])
    assert table.to_pydict() == {"n": [1, None], "s": ["x", "y"]}


@pytest.mark.parametrize("engine", _query.ENGINES)
def test_queries(job, engine):
    pytest.importorskip(engine)
    answer = job.query(
        """SELECT rank, "class", sum(dur) AS total, count(*) AS n
           FROM kernels GROUP BY rank, "class" ORDER BY rank, total DESC""",
        engine,
    )
    assert answer.column_names == ["rank", "class", "total", "n"]
    expected = {}
    kernels = job.kernels
    for rank, kind, dur in zip(kernels["rank"], kernels["class"], kernels["dur"]):
        expected[rank, kind] = expected.get((rank, kind), 0) + dur
    rows = zip(answer["rank"], answer["class"], answer["total"])
    assert {(rank, kind): total for rank, kind, total in rows} == expected
    assert sum(answer["n"]) == len(kernels)
    assert "query: " in repr(answer) and [kind for _, kind, _, _ in answer.about] == [
        "int", "str", "int", "int",
    ]
    with pytest.raises(ky.Error, match="the query failed"):
        job.query("SELECT nonsense FROM kernels", engine)


def test_an_engine_is_used_as_its_library_has_it(job, monkeypatch):
    """DuckDB's interface, played by a module of ours: what is asked of it, and with which tables."""
    seen = {}

    class Connection:
        description = [("n", "BIGINT")]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            seen["closed"] = True

        def register(self, name, table):
            seen[name] = table

        def execute(self, sql):
            seen["sql"] = sql
            return self

        def fetchall(self):
            return [(3,), (None,)]

    fake = types.ModuleType("duckdb")
    fake.connect, fake.Error = Connection, RuntimeError
    monkeypatch.setitem(sys.modules, "duckdb", fake)
    assert job.query("select n from Steps").to_pydict() == {"n": [3, None]}
    assert set(seen) == {"steps", "sql", "closed"}


def test_without_an_engine_it_says_what_to_install(job, monkeypatch):
    for name in _query.ENGINES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install kymograph\[sql\]"):
        job.query("SELECT 1")
    with pytest.raises(ValueError, match="duckdb, datafusion, polars"):
        job.query("SELECT 1", engine="sqlite")


def test_an_event_is_around_another_that_it_holds(tmp_path):
    """As for torch.profiler: one that ends earlier is not around the other."""
    spans = [("a", 0, 10), ("b", 1, 4), ("crosses", 3, 4), ("c", 8, 2), ("d", 20, 1)]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": start, "dur": dur, "pid": 1, "tid": 1}
        for name, start, dur in spans
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    events = ky.load(tmp_path / "t.json").events()
    around = dict(zip(events["name"], events["parent"]))
    assert around == {"a": None, "b": 0, "crosses": 0, "c": 0, "d": None}
