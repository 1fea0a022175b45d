"""What a program records is in the trace."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading

import judge
import pytest

import kymograph as ky
from kymograph import _command


# What is recorded together, in one trace: loading one takes trace_processor half a second.
WORKS = []


def recorded(function):
    WORKS.append(function)
    return function


heavy = pytest.mark.heavy


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "t.pftrace"
    with ky.record(path, buffer="256M") as recording:
        for work in WORKS:
            work()
    assert recording.stop().lost == 0
    return judge.Trace(path)


def run(code, *arguments, **options):
    """Runs a program; what it prints."""
    command = [*arguments, sys.executable, "-c", code]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@recorded
def scopes_nest_and_have_arguments():
    with ky.scope("outer", number=3, large=2**63 + 1, huge=2**80, real=1.5, text="a b"):
        for _ in range(3):
            with ky.scope("inner"):
                pass
        with ky.scope("other", yes=True, nothing=None, shape=(1, 2), category="io"):
            pass


def test_scopes_nest_and_have_arguments(trace):
    assert trace.parent("inner") == ["outer"] * 3
    assert trace.parent("other") == ["outer"]
    assert trace.args("outer") == {
        "number": "3",
        "large": str(2**63 + 1),
        "huge": str(2**80),
        "real": "1.5",
        "text": "a b",
    }
    assert trace.args("other") == {"yes": "true", "nothing": "None", "shape": "(1, 2)"}
    assert trace.column("SELECT category FROM slice WHERE name = 'other'") == ["io"]
    assert trace.column("SELECT DISTINCT category FROM slice WHERE name = 'inner'") == ["app"]


NAMES = ["plain", "two words", "größer → 名前", "x" * 5000, "\ud800 lone"]


@recorded
def names_of_every_kind():
    for _ in range(3):
        for name in NAMES:
            with ky.scope(name):
                pass
    for number in range(20_000):
        with ky.scope(f"number {number}"):
            pass


def test_names_of_every_kind(trace):
    for name in NAMES[:4]:
        assert trace.column(f"SELECT COUNT(*) FROM slice WHERE name = '{name}'") == [3]
    assert trace.column("SELECT COUNT(DISTINCT name) FROM slice WHERE name LIKE 'number %'") == [20_000]
    for wrong in (3, None, b"bytes", ["list"]):
        with pytest.raises(TypeError):
            ky.scope(wrong)
    with pytest.raises(TypeError):
        ky.scope()
    with pytest.raises(TypeError):
        ky.scope("a", "b")


@recorded
def an_exception_ends_the_scope_and_is_an_argument():
    with pytest.raises(KeyError):
        with ky.scope("fails"):
            raise KeyError("x")
    with ky.scope("after it failed"):
        pass


def test_an_exception_ends_the_scope_and_is_an_argument(trace):
    assert trace.args("fails") == {"exception": "KeyError"}
    assert trace.parent("after it failed") == []


@recorded
def a_value_that_cannot_be_shown_harms_nothing():
    class Hostile:
        def __str__(self):
            raise RuntimeError("no")

    class Tensor:
        shape, dtype = (2, 3), "float32"

        def __str__(self):
            raise AssertionError("a device would be waited for")

    with ky.scope("odd", hostile=Hostile(), tensor=Tensor()):
        pass


def test_a_value_that_cannot_be_shown_harms_nothing(trace):
    assert trace.args("odd") == {"hostile": "<Hostile>", "tensor": "Tensor(2, 3) float32"}
@recorded
def moments_counters_and_arrows():
    ky.instant("now", x=1)
    ky.counter("queue", 3)
    ky.counter("queue", 5)
    ky.counter("memory", 2.5, unit="bytes")
    flow = ky.flow()
    with ky.scope("from", flow=flow):
        pass
    with ky.scope("to", flow=flow.end):
        pass


def test_moments_counters_and_arrows(trace):
    assert trace.args("now") == {"x": "1"}
    values = "SELECT value FROM counter JOIN counter_track t ON t.id = track_id WHERE t.name = '{}' ORDER BY ts"
    assert trace.column(values.format("queue")) == [3, 5]
    assert trace.column(values.format("memory")) == [2.5]
    arrows = """SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out
        JOIN slice b ON b.id = slice_in"""
    assert trace.rows(arrows) == [["from", "to"]]
    with pytest.raises(ValueError, match="unit"):
        ky.counter("queue", 3, unit="metres")


@recorded
def functions_are_traced_as_what_they_are():
    @ky.trace
    def plain(a, *, b):
        """Says something."""
        return a + b

    @ky.trace("called so", category="io", n=1)
    def other():
        return 7

    @ky.trace
    def numbers():
        got = yield 1
        yield got

    @ky.trace
    async def answer():
        await asyncio.sleep(0)
        return 42

    @ky.trace
    async def stream():
        try:
            sent = yield 1
            yield sent
        except KeyError:
            yield "caught"

    async def consume():
        first = stream()
        assert [await first.asend(None), await first.asend("x")] == [1, "x"]
        with pytest.raises(StopAsyncIteration):
            await first.asend(None)
        second = stream()
        await second.asend(None)
        assert await second.athrow(KeyError()) == "caught"
        await second.aclose()
        return await answer()

    assert plain(1, b=2) == 3 and plain.__doc__ == "Says something." and other() == 7
    generator = numbers()
    assert next(generator) == 1 and generator.send("x") == "x"
    assert list(generator) == []
    assert asyncio.run(consume()) == 42


def test_functions_are_traced_as_what_they_are(trace):
    names = trace.column("SELECT name FROM slice")
    for function, count in [("plain", 1), ("numbers", 1), ("answer", 1), ("stream", 2)]:
        name = f"functions_are_traced_as_what_they_are.<locals>.{function}"
        assert names.count(name) == count
    assert trace.args("called so") == {"n": "1"}


@recorded
def each_task_of_asyncio_has_a_track():
    async def job(number, turn):
        with ky.scope("job", number=number):
            await turn.wait()
            with ky.scope("part"):
                await asyncio.sleep(0)

    async def main():
        turn = asyncio.Event()
        tasks = [asyncio.ensure_future(job(n, turn)) for n in range(3)]
        for number, task in enumerate(tasks):
            task.set_name(f"worker {number}")
        await asyncio.sleep(0)
        turn.set()
        await asyncio.gather(*tasks)

    with ky.scope("around"):
        asyncio.run(main())


def test_each_task_of_asyncio_has_a_track(trace):
    tracks = "SELECT DISTINCT t.name FROM slice JOIN track t ON t.id = track_id WHERE slice.name = '{}' ORDER BY 1"
    assert trace.column(tracks.format("job")) == ["worker 0", "worker 1", "worker 2"]
    assert trace.column(tracks.format("part")) == ["worker 0", "worker 1", "worker 2"]
    inside = """SELECT COUNT(*) FROM slice job JOIN slice part
        ON job.name = 'job' AND part.name = 'part' AND part.ts >= job.ts
        AND part.ts + part.dur <= job.ts + job.dur
        JOIN track a ON a.id = job.track_id JOIN track b ON b.id = part.track_id AND a.name = b.name"""
    assert trace.column(inside) == [3]
    around = """SELECT COUNT(*) FROM slice a JOIN slice b ON a.name = 'around'
        AND b.name IN ('job', 'part') WHERE b.ts < a.ts OR b.ts + b.dur > a.ts + a.dur"""
    assert trace.column(around) == [0]


@recorded
def scopes_of_a_generator_that_another_task_finishes():
    async def endless():
        with ky.scope("generated"):
            while True:
                yield

    async def main():
        async for _ in endless():
            break
        with ky.scope("after generated"):
            await asyncio.sleep(0)

    with ky.scope("around generated"):
        asyncio.run(main())


def test_scopes_of_a_generator_that_another_task_finishes(trace):
    names = trace.column("SELECT name FROM slice WHERE name LIKE '%generated' ORDER BY name")
    assert names == ["after generated", "around generated", "generated"]


@recorded
def many_tasks_share_tracks():
    async def job():
        with ky.scope("small job"):
            await asyncio.sleep(0)

    async def main():
        for _ in range(50):
            await asyncio.gather(*(job() for _ in range(100)))

    asyncio.run(main())


def test_many_tasks_share_tracks(trace):
    assert trace.column("SELECT COUNT(*) FROM slice WHERE name = 'small job'") == [5000]


@recorded
def ranges_may_cross_and_end_elsewhere():
    first = ky.async_scope("first", n=1).begin()
    second = ky.async_scope("second").begin()
    first.end(status="done")
    thread = threading.Thread(target=second.end)
    thread.start()
    thread.join()
    second.end()


def test_ranges_may_cross_and_end_elsewhere(trace):
    assert trace.args("first") == {"n": "1", "status": "done"}
    assert trace.column("SELECT COUNT(*) FROM slice WHERE name = 'second'") == [1]


@recorded
def ranges_nest_on_the_track_of_their_category():
    async def main():
        async with ky.async_scope("range outside", category="nested"):
            async with ky.async_scope("range inside", category="nested"):
                await asyncio.sleep(0)

    asyncio.run(main())
    with ky.async_scope("plain outside", category="nested"):
        with ky.async_scope("plain inside", category="nested"):
            pass


def test_ranges_nest_on_the_track_of_their_category(trace):
    """Ranges may cross: of a track, each row has what does not overlap, and they share its name."""
    # After so many tasks, this one shares a track.
    for kind, track in [("range", "task"), ("plain", "nested")]:
        places = f"""SELECT t.name, ts, ts + dur FROM slice JOIN track t ON t.id = track_id
            WHERE slice.name IN ('{kind} outside', '{kind} inside') ORDER BY ts"""
        (outer, start, end), (inner, *inside) = trace.rows(places)
        assert outer == inner == track
        assert start <= inside[0] and inside[1] <= end


@recorded
def threads_have_their_names():
    go = threading.Event()

    def wait():
        go.wait()
        ky.instant("early")

    early = threading.Thread(target=wait, name="was there before")
    early.start()

    go.set()
    early.join()
    thread = threading.Thread(target=lambda: ky.instant("late"), name="started later")
    thread.start()
    thread.join()


def test_threads_have_their_names(trace):
    names = """SELECT slice.name, thread.name FROM slice JOIN thread_track t ON t.id = track_id
        JOIN thread USING (utid) WHERE slice.name IN ('early', 'late') ORDER BY slice.name"""
    assert trace.rows(names) == [["early", "was there before"], ["late", "started later"]]


def test_calls_of_functions_on_request(tmp_path):
    def called():
        return len("x")

    path = tmp_path / "t.pftrace"
    with ky.record(path, python="functions"):
        called()
    # What ends the recording is called, too.
    trace = judge.Trace(path, unfinished=True)
    names = trace.column("SELECT name FROM slice")
    assert [name for name in names if name.endswith(": called")] != []
    assert sys.getprofile() is None


@heavy
def test_nothing_is_recorded_in_between(tmp_path):
    path = tmp_path / "t.pftrace"
    with ky.scope("before"):
        recording = ky.record(path)
    assert ky.is_recording()
    with pytest.raises(ky.Error, match="recorded already|already"):
        ky.record(tmp_path / "other.pftrace")
    recording.pause()
    with ky.scope("paused"):
        recording.resume()
    with ky.scope("seen"):
        pass
    recording.add_metadata("answer", 42)
    with ky.scope("open"):
        summary = recording.stop()
    assert not ky.is_recording() and recording.stop() is summary
    with ky.scope("after"):
        pass
    trace = judge.Trace(path, unfinished=True)
    names = trace.column("SELECT name FROM slice")
    assert "seen" in names and "before" not in names and "paused" not in names


@heavy
def test_scopes_end_on_the_side_on_which_they_began(tmp_path):
    """Whatever is switched on and off in between, no scope ends another one."""
    path = tmp_path / "t.pftrace"
    with ky.scope("never"):
        with ky.record(path, buffer="16M") as recording:
            with ky.scope("1 recorded"):
                recording.pause()
                with ky.scope("not"), ky.scope("not", n=1):
                    recording.resume()
                    with ky.scope("2 recorded"):
                        recording.pause()
                        with pytest.raises(KeyError), ky.scope("not"):
                            raise KeyError
                        recording.resume()
                        with ky.scope("3 recorded"):
                            pass
                    with ky.scope("4 recorded", n=1):
                        pass
                    recording.pause()
                recording.resume()
                with ky.scope("5 recorded"):
                    pass
            with ky.scope("6 recorded"):
                pass
    trace = judge.Trace(path)
    names = "SELECT name FROM slice ORDER BY name"
    assert trace.column(names) == [f"{number} recorded" for number in range(1, 7)]
    around = {name: trace.parent(f"{name} recorded") for name in range(1, 7)}
    first, second = ["1 recorded"], ["2 recorded"]
    assert around == {1: [], 2: first, 3: second, 4: first, 5: first, 6: []}


@heavy
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_without_kymo_record(tmp_path, method):
    """Children that fork record into files of their own; others if they start to."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing, os, sys
import kymograph as ky
METHOD = {method!r}

def work(number):
    if METHOD != "fork":
        ky.record("child.%p.pftrace")
    with ky.scope("in a child", number=number):
        pass

if __name__ == "__main__":
    with ky.record("parent.%p.pftrace"):
        context = multiprocessing.get_context(METHOD)
        children = [context.Process(target=work, args=(number,)) for number in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0]
"""
    )
    subprocess.run([sys.executable, program], cwd=tmp_path, check=True, timeout=120)
    seen = [judge.Trace(file) for file in tmp_path.glob("*.pftrace")]
    numbers = [t.args("in a child").get("number") for t in seen if t.column("SELECT 1 FROM slice")]
    assert sorted(numbers) == ["0", "1"]


def test_wrong_options_say_so(tmp_path):
    for options, word in [({"bufer": 1}, "BUFER"), ({"buffer": "much"}, "much")]:
        with pytest.raises(ky.Error, match=word):
            ky.record(tmp_path / "t.pftrace", **options)
    with pytest.raises(ky.Error):
        ky.record(tmp_path / "missing" / "t.pftrace")
    with pytest.raises(ValueError):
        ky.record("a\nb")
    with pytest.raises(ValueError):
        ky.flight_recorder(seconds=0)
    with pytest.raises(ky.Error, match="flight"):
        ky.dump(tmp_path / "t.pftrace")
    assert not ky.is_recording()


@heavy
def test_a_flight_recorder_dumps_what_it_holds(tmp_path):
    path = tmp_path / "t.pftrace"
    with ky.flight_recorder(60, "none", path) as recorder:
        for number in range(10):
            with ky.scope("work", number=number):
                pass
        ky.dump(tmp_path / "now.pftrace")
        ky.dump()
    assert "t.pftrace" in repr(recorder)
    for name in ("now.pftrace", "t.1.pftrace"):
        trace = judge.Trace(tmp_path / name)
        assert trace.column("SELECT COUNT(*) FROM slice WHERE name = 'work'") == [10]


@heavy
def test_it_joins_the_trace_of_kymo_record(tmp_path):
    path = tmp_path / "t.pftrace"
    code = """
import kymograph as ky
with ky.scope("before"):
    pass
with ky.record("never.pftrace") as recording:
    with ky.scope("inside", n=1):
        pass
assert recording.path is None and ky.is_recording()
with ky.scope("after"):
    pass
"""
    run(code, _command.path(), "record", "-q", "-o", path, "--", cwd=tmp_path)
    trace = judge.Trace(path)
    assert trace.column("SELECT name FROM slice ORDER BY ts") == ["before", "inside", "after"]
    assert os.listdir(tmp_path) == ["t.pftrace"]


def child(number):
    with ky.scope("in a child", number=number):
        pass
    return os.getpid()


@heavy
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_under_kymo_record(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import kymograph as ky
from test_record import child
if __name__ == "__main__":
    with ky.scope("in the parent"):
        with multiprocessing.get_context({method!r}).Pool(2) as pool:
            assert len(pool.map(child, range(8), chunksize=1)) == 8
            pool.close()
            pool.join()
"""
    )
    path = tmp_path / "t.pftrace"
    command = [_command.path(), "record", "-q", "-o", path, "--", sys.executable, program]
    assert subprocess.run(command, timeout=120).returncode == 0
    trace = judge.Trace(path)
    where = """SELECT COUNT(*), COUNT(DISTINCT upid) FROM slice JOIN thread_track t ON t.id = track_id
        JOIN thread USING (utid) WHERE slice.name = '{}'"""
    count, processes = trace.rows(where.format("in a child"))[0]
    assert count == 8 and processes in (1, 2)
    assert trace.rows(where.format("in the parent")) == [[1, 1]]


def in_child():
    with ky.scope("in a child"):
        pass


@heavy
def test_forked_children_have_files_of_their_own(tmp_path):
    context = multiprocessing.get_context("fork")
    with ky.record(tmp_path / "t.%p.pftrace") as recording:
        child = context.Process(target=in_child)
        child.start()
        child.join()
        with ky.scope("in the parent"):
            pass
    files = sorted(os.listdir(tmp_path))
    assert len(files) == 2 and child.exitcode == 0
    for name in files:
        trace = judge.Trace(tmp_path / name)
        own = os.path.basename(recording.path) == name
        expected = "in the parent" if own else "in a child"
        assert trace.column("SELECT name FROM slice") == [expected]


@heavy
def test_a_program_that_ends_while_it_records_has_its_trace(tmp_path):
    path = tmp_path / "t.pftrace"
    code = f"import kymograph as ky; r = ky.record({str(path)!r})\nwith ky.scope('last'): pass"
    assert run(code) == ""
    trace = judge.Trace(path)
    assert trace.column("SELECT name FROM slice") == ["last"]


def test_importing_it_loads_and_starts_nothing():
    code = """
import kymograph as ky, threading
with ky.scope("x", n=1): ky.instant("y"); ky.counter("z", 1)
ky.step(); ky.thread_name("t"); ky.flow(); ky.async_scope("s").begin().end()
assert "libkymograph" not in open("/proc/self/maps").read()
assert threading.active_count() == 1 and not ky.is_recording()
"""
    run(code)
