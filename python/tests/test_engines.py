"""Polars, DuckDB, pyarrow and pandas themselves take our tables. `python/test` has them for one
interpreter, of which it sets TEST_ENGINES: there none of them may be missing."""

import importlib
import os

import pytest

import kymograph as ky


def engine(name):
    if os.environ.get("TEST_ENGINES"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def address(arrow, column):
    """Where pyarrow has the values of a column."""
    (chunk,) = arrow.column(column).chunks
    return chunk.buffers()[1].address


def test_polars_takes_a_table_without_a_copy(job):
    polars, pyarrow = engine("polars"), engine("pyarrow")
    kernels = job.kernels
    taken = polars.from_arrow(kernels)
    assert isinstance(taken, polars.DataFrame)
    assert taken.to_dict(as_series=False) == kernels.to_pydict()
    for frame in taken, polars.DataFrame(kernels), kernels.to_polars():
        where, _, rows = frame.get_column("dur")._get_buffer_info()
        assert (where, rows) == (address(pyarrow.table(kernels), "dur"), len(kernels))
    assert taken.filter(polars.col("class") == "COMMUNICATION").height == 10


def test_a_slice_is_taken_without_a_copy(job):
    pyarrow = engine("pyarrow")
    whole, head = job.kernels, job.kernels.head(7)
    assert address(pyarrow.table(head), "dur") == address(pyarrow.table(whole), "dur")
    assert pyarrow.table(head).equals(pyarrow.table(whole).slice(0, 7))


def test_duckdb_takes_a_table_by_its_name(job):
    duckdb = engine("duckdb")
    kernels = job.kernels
    expected = (len(kernels), sum(kernels["dur"]))
    with duckdb.connect() as connection:
        # It finds the variable.
        assert connection.sql("select count(*), sum(dur) from kernels").fetchall() == [expected]
        connection.register("registered", kernels)
        found = connection.execute("select count(*), sum(dur) from registered").fetchall()
        assert found == [expected]
        # The empty table, and nulls.
        empty = kernels.head(0)
        assert connection.sql("select count(*) from empty").fetchall() == [(0,)]
        nulls = sum(step is None for step in kernels["step"])
        counted = connection.sql("select count(*) - count(step) from kernels").fetchall()
        assert counted == [(nulls,)]


@pytest.mark.parametrize("name", ["duckdb", "polars"])
def test_engines_answer_queries(job, name):
    engine(name)
    answer = job.query(
        "select name, sum(dur) as dur, count(*) as n from kernels group by name order by dur desc, name",
        name,
    )
    expected = {}
    for kernel, dur in zip(job.kernels["name"], job.kernels["dur"]):
        total, count = expected.get(kernel, (0, 0))
        expected[kernel] = (total + dur, count + 1)
    rows = sorted(((-dur, name, n) for name, (dur, n) in expected.items()))
    assert list(zip(answer["name"], answer["dur"], answer["n"])) == [
        (name, -dur, n) for dur, name, n in rows
    ]
    assert [kind for _, kind, _, _ in answer.about] == ["str", "int", "int"]
    joined = job.query(
        "select count(*) as n from kernels join calls on kernels.correlation = calls.correlation"
        " and kernels.rank = calls.rank",
        name,
    )
    assert joined["n"][0] > 0
    none = job.query("select name, dur from kernels where dur < 0", name)
    assert none.shape == (0, 2)
    with pytest.raises(ky.Error, match="the query failed"):
        job.query("select nonsense from kernels", name)


def test_the_documented_query_works(job):
    engine("duckdb")
    answer = job.query("select name, sum(dur) from kernels group by 1")
    assert sum(answer[answer.column_names[1]]) == sum(job.kernels["dur"])
    # What one engine answers, others take.
    polars = engine("polars")
    assert polars.from_arrow(answer).height == len(answer)


def test_pandas_has_what_the_others_have(job):
    pandas, polars = engine("pandas"), engine("polars")
    kernels = job.kernels
    ours = kernels.to_pandas()
    theirs = polars.from_arrow(kernels).to_pandas()
    assert list(ours.columns) == list(theirs.columns)
    assert ours["dur"].tolist() == theirs["dur"].tolist()
    assert ours["name"].tolist() == theirs["name"].tolist()
    assert pandas.api.types.is_integer_dtype(ours["dur"])
