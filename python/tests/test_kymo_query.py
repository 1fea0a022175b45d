"""`kymo query` as an engine: over the files of a trace, with its own tables, views and functions."""

import pathlib
import shutil
import stat
import subprocess

import pytest

import kymograph as ky
from kymograph import _command


@pytest.fixture
def program(monkeypatch):
    """The folder of a `kymo-scale` that has queries, which is in PATH."""
    folder = pathlib.Path(_command.path()).resolve().parent
    found = folder / "kymo-scale"
    if not found.exists():
        pytest.skip(f"{found} was not built")
    said = subprocess.run([found, "query", "none.json"], input=b"", capture_output=True).stderr
    if b"built without queries" in said:
        pytest.skip(f"{found} was built without queries")
    monkeypatch.setenv("PATH", str(folder))
    return found


def stand_in(folder, monkeypatch, script):
    """Another program of that name."""
    path = folder / "kymo-scale"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


def test_the_answer_is_that_of_the_events(job, program):
    answer = job.query(
        "SELECT rank, class, sum(dur) AS dur, count(*) AS n, 0.5 AS half, NULL AS nothing"
        " FROM kernels GROUP BY 1, 2 ORDER BY 1, 2",
        engine="kymo",
    )
    expected = {}
    kernels = job.kernels
    for rank, kind, dur in zip(kernels["rank"], kernels["class"], kernels["dur"]):
        total, count = expected.get((rank, kind.lower()), (0, 0))
        expected[rank, kind.lower()] = (total + dur, count + 1)
    found = zip(answer["rank"], answer["class"], answer["dur"], answer["n"])
    assert {(rank, kind): (dur, n) for rank, kind, dur, n in found} == expected
    assert [kind for _, kind, _, _ in answer.about] == ["int", "str", "int", "int", "float", "str"]
    assert set(answer["half"]) == {0.5} and set(answer["nothing"]) == {None}


def test_views_and_functions_are_there(job, program):
    busy = job.query(
        "SELECT rank, interval_union(ts, dur) AS busy FROM device_work GROUP BY 1 ORDER BY 1",
        "kymo",
    )
    assert busy["rank"] == job.ranks and all(time > 0 for time in busy["busy"])


def test_many_rows_and_none(job, program):
    every = job.query("SELECT name, ts, dur FROM operators", "kymo")
    assert sorted(every["dur"]) == sorted(job.operators["dur"])
    assert ("ts", "int", "ns") in [about[:3] for about in every.about]
    # More than a batch.
    pairs = job.query("SELECT a.name, b.id FROM operators a CROSS JOIN operators b LIMIT 20000", "kymo")
    assert len(pairs) == min(20000, len(job.operators) ** 2) > 8192
    assert job.query("SELECT name, dur FROM kernels WHERE dur < 0", "kymo").shape == (0, 2)
    # Without a space, and with what a path could be.
    assert job.query("VALUES(1)", "kymo").shape == (1, 1)


def test_paths_that_look_like_something_else(traces, program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = sorted(path for path in traces.iterdir() if ".json" in path.name)[0]
    name = "-o SELECT 1" + "".join(trace.suffixes)
    shutil.copy(trace, name)
    job = ky.load(name)
    assert job.query("SELECT count(*) AS n FROM kernels", "kymo")["n"] == [len(job.kernels)]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_query_that_is_refused_is_an_error(job, program):
    with pytest.raises(ky.Error, match="^the query failed: .*nonsense"):
        job.query("SELECT nonsense FROM kernels", "kymo")


def test_a_file_that_is_gone_is_named(traces, tmp_path):
    trace = sorted(path for path in traces.iterdir() if ".json" in path.name)[0]
    copy = tmp_path / trace.name
    shutil.copy(trace, copy)
    job = ky.load(copy)
    copy.unlink()
    with pytest.raises(FileNotFoundError, match="is not there any more"):
        job.query("SELECT 1", "kymo")


def test_without_the_program_it_says_what_to_build(job, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_command, "path", lambda: str(tmp_path / "kymo"))
    with pytest.raises(ImportError, match="cargo build --release -p kymograph-scale"):
        job.query("SELECT 1", "kymo")


def test_what_the_program_says_or_does_wrong_is_an_error(job, tmp_path, monkeypatch):
    monkeypatch.setattr(_command, "path", lambda: str(tmp_path / "kymo"))
    stand_in(tmp_path, monkeypatch, "echo 'kymo: rank 1 is missing' >&2; echo 'kymo: no' >&2; exit 2")
    with pytest.raises(ky.Error, match="^no$"):
        job.query("SELECT 1", "kymo")
    stand_in(tmp_path, monkeypatch, "exit 9")
    with pytest.raises(ky.Error, match="kymo-scale failed"):
        job.query("SELECT 1", "kymo")
    stand_in(tmp_path, monkeypatch, "echo no table")
    with pytest.raises(ky.Error):
        job.query("SELECT 1", "kymo")
