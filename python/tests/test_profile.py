"""`kymograph.profile` does what `torch.profiler.profile` does."""

import gc
import glob
import json
import os
import subprocess
import sys
import warnings

import judge
import pytest

import kymograph as ky
from kymograph import _command

pytestmark = pytest.mark.heavy
A, P = ky.ProfilerAction, ky.ProfilerActivity


def actions(schedule, steps):
    letters = {A.NONE: ".", A.WARMUP: "w", A.RECORD: "r", A.RECORD_AND_SAVE: "S"}
    return "".join(letters[schedule(step)] for step in range(steps))


def test_schedules():
    assert actions(ky.schedule(wait=2, warmup=1, active=3), 13) == "..wrrS..wrrS."
    assert actions(ky.schedule(wait=2, warmup=1, active=3, repeat=1), 13) == "..wrrS......."
    assert actions(ky.schedule(wait=2, warmup=1, active=3, skip_first=3), 13) == ".....wrrS..wr"
    skipping = ky.schedule(wait=2, warmup=1, active=1, repeat=2, skip_first=1, skip_first_wait=1)
    assert actions(skipping, 10) == ".wS..wS..."
    for wrong in ({"wait": -1}, {"active": 0}, {"warmup": -1}, {"repeat": -1}, {"skip_first": -1}):
        with pytest.raises(AssertionError):
            ky.schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})
    with pytest.warns(UserWarning, match="warmup"):
        ky.schedule(wait=1, warmup=0, active=1)
    with pytest.raises(TypeError):
        ky.schedule(1, 1, 1)


def names(path):
    return judge.Trace(path).column("SELECT name FROM slice ORDER BY ts")


def test_each_cycle_is_a_trace_in_the_folder(tmp_path):
    seen = []

    def ready(prof):
        seen.append(prof.step_num)
        handler(prof)

    handler = ky.trace_handler(tmp_path / "runs", "host")
    ready.target = handler.target
    schedule = ky.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    with ky.profile(schedule=schedule, on_trace_ready=ready) as prof:
        for number in range(12):
            with ky.record_function(f"work {number}"):
                pass
            prof.step()
    assert seen == [5, 9] and prof.step_num == 12
    files = sorted(glob.glob(str(tmp_path / "runs" / "host.*.pftrace")))
    assert [names(file) for file in files] == [
        ["ProfilerStep#3", "work 3", "ProfilerStep#4", "work 4"],
        ["ProfilerStep#7", "work 7", "ProfilerStep#8", "work 8"],
    ]
    assert not ky.is_recording()


def test_without_a_schedule_all_is_one_trace(tmp_path):
    ready = []
    with ky.profile(on_trace_ready=ready.append) as prof:
        with ky.record_function("one", "with arguments"):
            pass
        prof.step()

        @ky.record_function("two")
        def two():
            return 2

        assert two() == 2
        prof.add_metadata("text", "a \"b\"")
        prof.add_metadata_json("list", "[1, 2]")
    assert ready == [prof]
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    prof.export_chrome_trace(tmp_path / "t.pftrace")
    assert names(tmp_path / "t.pftrace") == ["one", "two"]
    written = json.loads((tmp_path / "t.json").read_text())
    assert written["text"] == 'a "b"' and written["list"] == [1, 2]
    assert {"one", "two"} <= {event.get("name") for event in written["traceEvents"]}
    assert ky.load(tmp_path / "t.json.gz").counts()["slices"] >= 2
    events = prof.events()
    assert [event.name for event in events] == ["one", "two"]
    assert all(event.cpu_time_total > 0 and event.device_type == "CPU" for event in events)
    assert "ProfilerStep" not in str(events)
    temporary = prof._files[-1].path
    assert os.path.exists(temporary)
    del events, prof, ready[:]
    gc.collect()
    assert not os.path.exists(temporary)


def test_events_nest_and_average():
    with ky.profile() as prof:
        for _ in range(3):
            with ky.record_function("outer"):
                for _ in range(2):
                    with ky.record_function("inner"):
                        pass
    events = prof.events()
    inner = [event for event in events if event.name == "inner"]
    assert len(inner) == 6 and {event.cpu_parent.name for event in inner} == {"outer"}
    outer = events[0]
    assert len(outer.cpu_children) == 2
    spent = sum(child.cpu_time_total for child in outer.cpu_children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - spent)
    averages = {average.key: average for average in prof.key_averages()}
    assert averages["outer"].count == 3 and averages["inner"].count == 6
    assert averages["inner"].cpu_time == pytest.approx(averages["inner"].cpu_time_total / 6)
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    assert "outer" in table and "# of Calls" in table and "Self CPU time total" in table
    assert len(prof.key_averages().table(row_limit=1).splitlines()) == 6
    for key in ("cuda_time", "self_cuda_time_total", "cpu_time_total", "count"):
        prof.key_averages().table(sort_by=key)
    with pytest.raises(ValueError, match="sort_by"):
        prof.key_averages().table(sort_by="beauty")
    assert prof.key_averages().total_average().count == 9


def test_cycles_are_loaded_together_and_said_to_be_of_one_process(tmp_path):
    ready = ky.trace_handler(str(tmp_path / "runs"))
    cycles = ky.schedule(wait=0, warmup=1, active=2, repeat=2)
    with ky.profile(schedule=cycles, on_trace_ready=ready) as prof:
        for _ in range(8):
            prof.step()
    t = ky.load(tmp_path / "runs" / "*.pftrace")
    assert t.ranks == [0, 1] and len(t.steps) == 4
    (warning,) = t.warnings
    assert "is of the process that recorded rank 0" in warning and "taken for rank 1" in warning


TASKS = """
import asyncio
import kymograph as ky

async def job():
    with ky.scope("outer"):
        await asyncio.sleep(0)
        with ky.record_function("inner"):
            await asyncio.sleep(0)
            with ky.scope("leaf"):
                pass

async def main(names):
    await asyncio.gather(*(asyncio.create_task(job(), name=name) for name in names))

with ky.profile() as prof:
    asyncio.run(main(["one", "two"]))
events = prof.events()
around = sorted((event.name, event.cpu_parent and event.cpu_parent.name) for event in events[2:])
assert around == [("inner", "outer")] * 2 + [("leaf", "inner")] * 2, around
for outer in events[:2]:
    assert outer.name == "outer" and outer.cpu_parent is None
    inner, = outer.cpu_children
    own = outer.cpu_time_total - inner.cpu_time_total
    assert abs(outer.self_cpu_time_total - own) < 0.001

# Nothing tells apart what two tasks of one name do at the same time.
with ky.profile() as prof:
    asyncio.run(main(["same", "same"]))
assert {event.cpu_parent for event in prof.events()} == {None}
"""


def test_scopes_of_a_task_nest():
    # In a process of its own: one that has had 4096 tasks has no track with a task's name left.
    subprocess.run([sys.executable, "-c", TASKS], check=True, timeout=120)


def test_stacks_are_exported(tmp_path):
    with ky.profile() as prof:
        with ky.record_function("an outer"):
            with ky.record_function("inner"):
                sum(range(100_000))
    prof.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    assert "an_outer;inner " in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "stacks", "beauty")


def test_tensorboards_handler_writes_json(tmp_path):
    for use_gzip, ending in ((False, ".pt.trace.json"), (True, ".pt.trace.json.gz")):
        handler = ky.tensorboard_trace_handler(str(tmp_path / ending), "me", use_gzip)
        with ky.profile(on_trace_ready=handler):
            with ky.record_function("work"):
                pass
        (name,) = os.listdir(tmp_path / ending)
        assert name.startswith("me.") and name.endswith(ending)
        assert ky.load(tmp_path / ending / name).counts()["slices"] == 1


def test_start_stop_and_mistakes(tmp_path):
    prof = ky.profile()
    with pytest.raises(RuntimeError, match="not been started"):
        prof.export_chrome_trace(tmp_path / "t.json")
    prof.start()
    with pytest.raises(RuntimeError, match="still being recorded"):
        prof.key_averages()
    with pytest.raises(ky.Error, match="already"):
        ky.profile().start()
    prof.toggle_collection_dynamic(False, [P.CPU, P.CUDA])
    with ky.record_function("paused"):
        pass
    prof.toggle_collection_dynamic(True, [P.CPU, P.CUDA])
    with pytest.raises(NotImplementedError):
        prof.toggle_collection_dynamic(False, [P.CUDA])
    with ky.record_function("seen"):
        pass
    prof.stop()
    prof.stop()
    with pytest.raises(RuntimeError, match="not running"):
        prof.step()
    assert [event.name for event in prof.events()] == ["seen"]
    for wrong in ({"with_flops": True}, {"experimental_config": 1}, {"execution_trace_observer": 1}):
        with pytest.raises(NotImplementedError, match=next(iter(wrong))):
            ky.profile(**wrong)
    with pytest.raises(NotImplementedError, match="PYTORCH_MEMORY"):
        ky.profile(profile_memory=True)
    with pytest.raises(NotImplementedError):
        prof.export_memory_timeline("x")
    with pytest.raises(ValueError, match="python"):
        ky.profile(python="all")
    with pytest.raises(json.JSONDecodeError):
        prof.add_metadata_json("key", "{")


def test_a_warmup_that_leads_nowhere_leaves_nothing(tmp_path):
    schedule = ky.schedule(wait=1, warmup=5, active=1)
    with ky.profile(schedule=schedule, on_trace_ready=ky.trace_handler(tmp_path)) as prof:
        for _ in range(3):
            prof.step()
    assert os.listdir(tmp_path) == [] and not ky.is_recording()


def test_accumulated_events_are_of_all_cycles():
    schedule = ky.schedule(wait=0, warmup=1, active=1, repeat=2)
    with ky.profile(schedule=schedule, acc_events=True) as prof:
        for number in range(4):
            with ky.record_function("work"):
                pass
            prof.step()
    assert {a.key: a.count for a in prof.key_averages()}["work"] == 2


def test_schedules_that_make_no_sense_warn():
    def schedule(step):
        return [A.NONE, A.RECORD, A.NONE, A.WARMUP, A.NONE][step]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ky.profile(schedule=schedule) as prof:
            for _ in range(4):
                prof.step()
    said = [str(warning.message) for warning in caught]
    assert said == [
        "Incorrect schedule: RECORD followed by NONE",
        "Incorrect schedule: WARMUP followed by NONE",
    ]


PROGRAM = """
import kymograph as ky
with ky.profile(schedule=ky.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=ky.trace_handler("runs")) as prof:
    for number in range(6):
        with ky.record_function(f"work {number}"):
            pass
        prof.step()
print(prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
"""


def test_under_kymo_record_its_trace_has_everything(tmp_path):
    path = tmp_path / "t.pftrace"
    command = [_command.path(), "record", "-q", "-o", path, "--", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Self CPU" in done.stdout, done.stderr
    found = names(path)
    assert [name for name in found if name.startswith("work")] == [f"work {n}" for n in range(6)]
    assert [name for name in found if name.startswith("Prof")] == [f"ProfilerStep#{n}" for n in range(1, 7)]
    assert sorted(os.listdir(tmp_path)) == ["runs", "t.pftrace"]
    assert os.listdir(tmp_path / "runs") == []


def test_a_schedule_of_torchs_own_is_understood():
    import enum

    class ProfilerAction(enum.Enum):
        NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)

    with ky.profile(schedule=lambda step: ProfilerAction.RECORD_AND_SAVE) as prof:
        prof.step()
    assert prof.current_action is None
