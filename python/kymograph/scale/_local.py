"""Processes of this machine, each of which reads one trace after another. One that is killed, as
when memory runs out, is replaced, and its trace is read again."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from .. import _kymograph

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable

# How often a trace is read if the process is killed each time.
ATTEMPTS = 3
# Nothing of the program that started it is run again, so it needs no `if __name__ == "__main__"`.
_CODE = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from kymograph.scale import _local
_local.serve()
"""


def run(
    task: Any, items: list[Any], gather: Any, fan_in: int, session: Any, workers: int | None
) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    count = min(workers or os.cpu_count() or 1, len(items))
    idle = [_Worker(task) for _ in range(count)]
    every = list(idle)

    def one(item: Any) -> Any:
        worker = idle.pop()
        try:
            return worker.ask(item)
        finally:
            idle.append(worker)

    pool = ThreadPoolExecutor(count)
    try:
        futures = [pool.submit(one, item) for item in items]
        return gather([future.result() for future in futures])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in every:
            worker.end()
        pool.shutdown()


class _Worker:
    """A process, or none before the first trace and after one was killed. Used by one thread at a
    time, but for `end`."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = False

    def ask(self, item: Any) -> Any:
        code: int | None = None
        for _ in range(ATTEMPTS):
            process = self.process or self.start()
            try:
                return self.answer(process, item)
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                self.process = None
                code = _kill(process)
                if self.ended:
                    break
        how = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
        raise _kymograph.Error(
            f"{item[1]}: the process that read it was ended {how}, {ATTEMPTS} times: is there "
            "enough memory? Fewer `workers` need less"
        )

    def start(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", _CODE]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process = process
        if self.ended:
            process.kill()
        try:
            self.send(process, sys.path)
            self.send(process, self.task)
        except BrokenPipeError:
            # The question finds out.
            pass
        return process

    def send(self, process: subprocess.Popen[bytes], what: Any) -> None:
        assert process.stdin is not None
        pickle.dump(what, process.stdin)
        process.stdin.flush()

    def answer(self, process: subprocess.Popen[bytes], item: Any) -> Any:
        assert process.stdout is not None
        self.send(process, item)
        raised, given = pickle.load(process.stdout)
        if raised:
            raise given
        return given

    def end(self) -> None:
        """Ends the process, from any thread."""
        self.ended = True
        process = self.process
        if process is not None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> int:
    process.kill()
    status = process.wait()
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            # What was not sent yet has no reader any more.
            pass
    return status


def serve() -> None:
    """What such a process does, until its standard input ends."""
    import signal

    # Ctrl-C is for the program that started this one, which then ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    # What anything prints is no answer.
    os.dup2(2, 1)
    _serve(questions, answers)


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    try:
        task: Callable[[Any], Any] = pickle.load(questions)
        while True:
            item = pickle.load(questions)
            try:
                answer = (False, task(item))
            except Exception as error:
                answer = (True, error)
            pickle.dump(answer, answers)
            answers.flush()
    except (EOFError, BrokenPipeError):
        pass
