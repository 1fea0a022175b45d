"""Traces are loaded, or it is said why not."""

import os
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import kymograph as ky


def test_a_folder_a_pattern_and_files_are_the_same_ranks(traces, job):
    files = sorted(traces.iterdir())
    for words in ([str(traces / "*.json.gz")], files, [files[0], str(files[1])]):
        loaded = ky.load(*words)
        assert loaded.ranks == job.ranks == [0, 1]
        assert sorted(loaded.paths) == [str(path) for path in files]
        table = loaded.kernel_breakdown().to_pydict()
        assert table == job.kernel_breakdown().to_pydict()
    assert job.counts(1)["activities"] > 0 and job.counts() == job.counts(0)
    assert "2 ranks of 2 files" in repr(job)


def test_what_cannot_be_loaded_says_why(traces, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.json"):
        ky.load(tmp_path / "nothing.json")
    with pytest.raises(FileNotFoundError, match="no traces in this folder"):
        ky.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no traces of such a name"):
        ky.load(str(tmp_path / "x*"))
    (tmp_path / "notes.json").write_text("once upon a time")
    with pytest.raises(ky.Error, match="notes.json"):
        ky.load(tmp_path / "notes.json")
    rank0 = next(traces.glob("*rank0*"))
    with pytest.raises(ValueError, match="both rank 0"):
        ky.load(rank0, rank0)
    with pytest.raises(ValueError, match="no rank 7"):
        ky.load(rank0).counts(7)
    with pytest.raises(TypeError):
        ky.load()


def test_other_threads_run_while_a_trace_is_read(tmp_path):
    # A pipe keeps the reader waiting for as long as it takes the other thread to be seen.
    pipe = tmp_path / "slow.json"
    os.mkfifo(pipe)
    ran = threading.Event()

    def feed():
        with open(pipe, "w") as file:
            ran.set()
            file.write('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')

    thread = threading.Thread(target=feed)
    thread.start()
    assert ky.load(pipe).counts()["slices"] == 1
    assert ran.is_set()
    thread.join()


def test_ctrl_c_ends_a_load(tmp_path):
    pipe = tmp_path / "endless.json"
    os.mkfifo(pipe)
    program = f"import kymograph as ky; print('loads', flush=True); ky.load({str(pipe)!r})"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "loads\n"
    with open(pipe, "w") as file:  # opens when the child reads
        file.write("[")
        file.flush()
        deadline = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            child.send_signal(signal.SIGINT)
            time.sleep(0.2)
    said = child.communicate()[1]
    assert child.returncode != 0 and "KeyboardInterrupt" in said


def test_progress_is_shown_when_asked(capsys):
    from kymograph import _progress

    assert _progress.bar(False) is None
    progress = _progress.bar(True)
    progress(10, 20)
    assert capsys.readouterr().err == "", "nothing in the first second"
    progress._began -= 5
    progress(20_000_000, 80_000_000)
    said = capsys.readouterr().err
    assert " 25% |" in said and "20 of 80 MB" in said and "s left" in said
    progress._shown = -1
    progress(20_000_000, 0)
    said = capsys.readouterr().err
    assert "20 MB" in said and "%" not in said
    progress.close()
    assert capsys.readouterr().err.endswith("\r\033[K")


def test_progress_in_a_notebook_is_a_bar(monkeypatch, capsys):
    """IPython's interface, played by modules of ours."""
    from kymograph import _progress

    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, display_id):
        shown.append(html)
        return Handle()

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    progress = _progress.bar(None)
    progress._began -= 5
    progress(1_000_000, 4_000_000)
    assert '<progress value="0.250">' in shown[0]
    progress.close()
    assert shown[1:] == [""] and capsys.readouterr().err == ""
    ipython.get_ipython = lambda: types.SimpleNamespace()
    assert _progress.bar(None) is None, "a shell on a terminal that is none here"


def test_how_much_there_is_to_read_is_known(traces):
    seen = []
    files = sorted(traces.iterdir())

    def tick(done, total):
        seen.append((done, total))

    from kymograph import _kymograph

    _kymograph.load([str(file) for file in files], tick)
    sizes = sum(file.stat().st_size for file in files)
    assert all(total == sizes and done <= total for done, total in seen)
