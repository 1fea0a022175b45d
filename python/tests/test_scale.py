"""Ranks that processes read are the same job as ranks that are loaded."""

import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

import pytest

import jobs
import kymograph as ky
from kymograph import _kymograph, scale
from kymograph.scale import _local, _ranks

# Of one rank after the other; joined; of several tables; with a moment; without a table.
METRICS = ["temporal_breakdown", "collectives", "stragglers", "distributed", "idle_intervals"]


@pytest.fixture(scope="module")
def folder(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job") / "traces"
    jobs.write(traces, folder)
    return folder


def same(one, other):
    assert one.name == other.name and one.about == other.about
    assert one.to_pydict() == other.to_pydict()


def test_the_tables_are_those_of_a_load(folder):
    loaded = ky.load(folder)
    tables = scale.analyze(METRICS, folder, workers=2)
    assert list(tables) == METRICS
    for name, table in tables.items():
        same(table, loaded.metric(name))
        assert len(table) > 0


def test_options_are_those_of_the_metric(folder):
    loaded = ky.load(folder)
    options = {"ranks": [1, 4], "sort": "sum", "limit": 3, "num_kernels": 4}
    table = scale.analyze("kernel_breakdown", folder, workers=1, **options)
    same(table, loaded.kernel_breakdown(**options))
    same(
        scale.analyze("idle_time", folder, compat="hta", workers=2), loaded.idle_time(compat="hta")
    )
    with pytest.raises(TypeError, match="no option `nonsense`"):
        scale.analyze("idle_time", folder, nonsense=1)
    with pytest.raises(KeyError, match="nonsense"):
        scale.analyze("nonsense", folder)
    with pytest.raises(ValueError, match="compares two"):
        scale.analyze("diff", folder)
    with pytest.raises(ky.NoDataError, match="no rank of"):
        scale.analyze("idle_time", folder, ranks=[77], workers=1)


def test_what_makes_no_sense_is_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="one of local, ray, dask, spark"):
        scale.analyze("idle_time", folder, engine="slurm")
    with pytest.raises(ValueError, match="workers"):
        scale.analyze("idle_time", folder, workers=0)
    with pytest.raises(ValueError, match="session"):
        scale.analyze("idle_time", folder, session=object())
    with pytest.raises(TypeError, match="which trace"):
        scale.analyze("idle_time")
    with pytest.raises(TypeError, match="which metric"):
        scale.analyze([], folder)
    with pytest.raises(FileNotFoundError):
        scale.analyze("idle_time", folder / "none*.json")
    (tmp_path / "kymograph-dataset.json").touch()
    with pytest.raises(ValueError, match="is a data set.*`kymo analyze idle_time"):
        scale.analyze("idle_time", tmp_path)


def test_an_engine_that_is_not_there_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "kymograph.scale._dask", raising=False)
    with pytest.raises(ImportError, match="needs distributed"):
        scale.analyze("idle_time", folder, engine="dask")


def change(path, **facts):
    trace = json.loads(path.read_text())
    trace["distributedInfo"].update(facts)
    path.write_text(json.dumps(trace))


def test_a_rank_that_is_missing_or_broken_has_a_clear_word(traces, tmp_path):
    paths = jobs.write(traces, tmp_path, 4)
    paths[1].unlink()
    with pytest.raises(ky.Error, match="^rank 1 is missing; partial=True"):
        scale.analyze("idle_time", tmp_path, workers=1)
    whole = paths[2].read_text()
    paths[2].write_text(whole[: len(whole) * 9 // 10])
    paths[3].write_text("no trace at all")
    with pytest.raises(ky.Error) as caught:
        scale.analyze("idle_time", tmp_path, workers=2)
    for what in ("rank2.json: its end is missing", "rank3.json", "ranks 1–3 (3 in all) are missing"):
        assert what in str(caught.value)
    with pytest.warns(RuntimeWarning, match="left out") as warned:
        table = scale.analyze("idle_time", tmp_path, workers=2, partial=True)
    assert len(warned) == 3 and set(table["rank"]) == {0}
    # Warnings are about the line that asked.
    assert {warning.filename for warning in warned} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = scale.analyze("idle_time", tmp_path, workers=2, partial=True, damaged=True)
    assert set(table["rank"]) == {0, 2}
    # A rank that was not asked for may be missing.
    assert set(scale.analyze("idle_time", paths[0], workers=1, ranks=[0])["rank"]) == {0}


def test_ranks_of_several_jobs_are_refused_even_in_part(traces, tmp_path):
    paths = jobs.write(traces, tmp_path, 4)
    change(paths[3], rank=2)
    with pytest.raises(ValueError, match="rank2.json and .*rank3.json are both rank 2"):
        scale.analyze("idle_time", tmp_path, workers=1, partial=True)
    change(paths[3], rank=3, world_size=8)
    with pytest.raises(ValueError, match="rank 3 is of a job of 8 ranks"):
        scale.analyze("idle_time", tmp_path, workers=1, partial=True)
    change(paths[3], world_size=4)
    trace = json.loads(paths[3].read_text())
    trace["baseTimeNanoseconds"] += 3600 * 10**9
    paths[3].write_text(json.dumps(trace))
    with pytest.raises(ValueError, match="rank 3 begins 60 minutes after"):
        scale.analyze("idle_time", tmp_path, workers=1)


class Deadly(_ranks.Task):
    """Kills its process, in the middle of some traces: the first time, or every time."""

    def __init__(self, marks, always):
        super().__init__(["idle_time"], {}, False)
        self.marks, self.always = str(marks), always

    def __call__(self, item):
        mark = pathlib.Path(self.marks) / str(item[0])
        if item[0] % 3 == 1 and (self.always or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), 9)
        return super().__call__(item)


def test_a_process_that_is_killed_changes_nothing(folder, tmp_path, monkeypatch):
    # Processes find this file as programs find theirs: by sys.path.
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent))
    items = list(enumerate(map(str, sorted(folder.iterdir()))))
    expected = _ranks.gather([_ranks.Task(["idle_time"], {}, False)(item) for item in items])
    given = _local.run(Deadly(tmp_path, False), items, _ranks.gather, 16, None, 2)
    assert given == expected and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ky.Error, match=r"rank\d.json: .* by signal 9, 3 times"):
        _local.run(Deadly(tmp_path, True), items, _ranks.gather, 16, None, 2)


class Failing(_ranks.Task):
    def __call__(self, item):
        raise BlockingIOError("the storage is busy")


def test_what_a_task_raises_is_raised(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent))
    items = list(enumerate(map(str, sorted(folder.iterdir()))))
    with pytest.raises(BlockingIOError, match="busy"):
        _local.run(Failing(["idle_time"], {}, False), items, _ranks.gather, 16, None, 2)


def test_a_program_without_a_main_guard_may_ask(folder):
    code = f"""
from kymograph import scale
print(sorted(set(scale.analyze("idle_time", {str(folder)!r}, workers=2)["rank"])))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{list(range(jobs.RANKS))}\n"


def test_ctrl_c_ends_it_and_its_processes(folder, tmp_path):
    mark = tmp_path / "begun"
    os.mkfifo(tmp_path / "rank9.json")
    # A process waits for a trace that never comes.
    code = f"""
import pathlib, threading, time
from kymograph import scale
from kymograph.scale import _local
start = _local._Worker.start
def started(self):
    process = start(self)
    pathlib.Path({str(mark)!r}).write_text(str(process.pid))
    return process
_local._Worker.start = started
scale.analyze("idle_time", {str(tmp_path / "rank9.json")!r})
"""
    asking = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while not mark.exists() or not mark.read_text():
        assert asking.poll() is None
        time.sleep(0.01)
    asking.send_signal(2)
    assert "KeyboardInterrupt" in asking.communicate()[1]
    assert not pathlib.Path(f"/proc/{mark.read_text()}").exists()


def test_problems_of_a_job_are_sentences():
    place = (0, 2, None)
    assert _kymograph.job_problems([("a", place), ("b", (1, 2, None))]) == ([], None)
    assert _kymograph.job_problems([("a", place)]) == ([], "rank 1 is missing")
    assert _kymograph.job_problems([]) == ([], None)
