"""With PyTorch, where it is here: a program changes one import."""

import json
import sys

import judge
import pytest

torch = pytest.importorskip("torch")

import kymograph as ky  # noqa: E402


def train(prof, steps):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.profiler.record_function("forward"):
            loss = model(torch.randn(4, 8)).sum()
        loss.backward()
        optimizer.step()
        prof.step()


def test_the_steps_of_a_training(tmp_path):
    schedule = ky.schedule(skip_first=2, wait=1, warmup=1, active=3, repeat=2)
    with ky.profile(
        schedule=schedule,
        on_trace_ready=ky.trace_handler(tmp_path),
        record_shapes=True,
        python="modules",
    ) as prof:
        train(prof, 14)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    for file, first in zip(files, (4, 9)):
        trace = judge.Trace(file)
        count = "SELECT COUNT(*) FROM slice WHERE name = '{}'"
        assert trace.column(count.format("forward")) == [3]
        assert trace.column(count.format("aten::addmm")) == [6]
        assert trace.column(count.format("nn.Module: Linear_1")) == [3]
        steps = trace.column("SELECT name FROM slice WHERE name LIKE 'ProfilerStep%' ORDER BY ts")
        assert steps == [f"ProfilerStep#{n}" for n in range(first, first + 3)]
        around = """SELECT DISTINCT outer_.name FROM slice JOIN ancestor_slice(slice.id) outer_
            WHERE slice.name = 'aten::addmm' ORDER BY 1"""
        assert "forward" in trace.column(around)
    averages = {average.key: average for average in prof.key_averages()}
    assert averages["aten::addmm"].count == 6
    table = prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=10)
    assert "CPU total" in table


def test_torch_profiler_is_patched(tmp_path):
    original = torch.profiler.profile
    restore = ky.patch_torch_profiler()
    try:
        assert torch.profiler.profile is ky.profile
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
            on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), "w"),
        ) as prof:
            train(prof, 4)
        assert ky.patch_torch_profiler() is not restore
    finally:
        restore()
    assert torch.profiler.profile is original
    (file,) = tmp_path.iterdir()
    names = {event.get("name") for event in json.loads(file.read_text())["traceEvents"]}
    assert {"forward", "aten::addmm", "ProfilerStep#2"} <= names


def test_torch_may_come_later(tmp_path):
    import subprocess

    code = f"""
import kymograph as ky
with ky.record({str(tmp_path / "t.pftrace")!r}):
    import torch
    torch.ones(2) + 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    trace = judge.Trace(tmp_path / "t.pftrace")
    assert trace.column("SELECT COUNT(*) FROM slice WHERE name = 'aten::add'") == [1]


def test_events_have_what_operators_were_called_with(tmp_path):
    # In a process of its own: whether shapes are recorded is decided by its first recording.
    import subprocess

    program = """
import kymograph as ky, torch
with ky.profile(record_shapes=True) as prof:
    torch.rand(2, 6).as_strided([4, 3], [1, 4])
    torch.ones(2, 3).mm(torch.ones(3, 4))
events = {event.name: event for event in prof.events()}
strided = events["aten::as_strided"]
shapes = {a.key: a.input_shapes for a in prof.key_averages(group_by_input_shape=True)}
assert shapes["aten::mm"] == [[2, 3], [3, 4]], shapes
print([strided.input_shapes[0], *strided.concrete_inputs[1:3], events["aten::mm"].input_shapes])
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout) == [[2, 6], [4, 3], [1, 4], [[2, 3], [3, 4]]]


def test_inputs_that_are_asked_for_too_late_are_warned_of():
    import subprocess

    program = """
import warnings, kymograph as ky, torch
with ky.profile():
    torch.ones(2) + 1
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with ky.profile(record_shapes=True) as prof:
        torch.ones(2) + 1
assert [event.input_shapes for event in prof.events() if event.name == "aten::add"] == [[]]
(warning,) = caught
assert "not recorded" in str(warning.message) and warning.filename == "<string>", warning
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
