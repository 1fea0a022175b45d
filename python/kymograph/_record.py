"""Recording what a program does."""

from __future__ import annotations

import os
import sys

from . import _kymograph
from ._kymograph import Flow, counter, flow, instant, scope

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, TypeVar, Union, overload

    F = TypeVar("F", bound=Callable[..., Any])
    Path = Union[str, os.PathLike[str]]


class Summary:
    """What a recording amounted to: numbers.

    events: slices, ranges, instants and counter values in the trace. lost: events that are missing.
    truncated: texts and arguments that were cut short. threads: those that recorded something.
    bytes: the size of the trace before compression. discarded: what a flight recorder had to let
    go.
    """

    __slots__ = ("bytes", "discarded", "events", "lost", "threads", "truncated")

    def __init__(
        self,
        events: int = 0,
        lost: int = 0,
        truncated: int = 0,
        threads: int = 0,
        bytes: int = 0,
        discarded: int = 0,
    ) -> None:
        self.events, self.lost, self.truncated = events, lost, truncated
        self.threads, self.bytes, self.discarded = threads, bytes, discarded

    def __repr__(self) -> str:
        names = ("events", "lost", "truncated", "threads", "bytes", "discarded")
        return f"Summary({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


__all__ = [
    "Flow",
    "Recording",
    "Summary",
    "arm",
    "async_scope",
    "counter",
    "dump",
    "flight_recorder",
    "flow",
    "instant",
    "is_recording",
    "process_name",
    "record",
    "scope",
    "step",
    "thread_name",
    "trace",
]


def library() -> str:
    """Where the library that records is, unless the process has one already."""
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(here, "bin", "libkymograph.so")


def options(given: dict[str, Any]) -> str:
    """Options as the library takes them: `buffer="128M"` becomes `BUFFER=128M`."""
    lines = []
    for key, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = int(value)
        text = f"{os.fspath(value) if isinstance(value, os.PathLike) else value}"
        if "\n" in text:
            raise ValueError(f"{key} has a line break in it")
        lines.append(f"{key.upper()}={text}")
    return "\n".join(lines)


class Recording:
    """A recording that runs; `record` and `flight_recorder` start it. It ends with `stop()`, with
    the `with` block that it is used in, or with the program. Any thread may use it."""

    def __init__(self, path: str, adopted: bool, calls: bool = False) -> None:
        self._path, self._adopted, self._pid = path, adopted, os.getpid()
        self._calls = calls
        self._summary: Summary | None = None

    @property
    def path(self) -> str | None:
        """The file that is written; None under `kymo record`, whose file it is."""
        return None if self._adopted else self._path

    def stop(self) -> Summary:
        """Ends it, writes what is left, and says what it amounted to. A second call does nothing,
        nor does a call in a forked child, in which the recording is not this one."""
        if self._summary is None:
            if self._pid != os.getpid():
                return Summary()
            if self._calls:
                _kymograph.forget_calls()
            self._summary = Summary(**_kymograph.stop())
        return self._summary

    def pause(self) -> None:
        """Records nothing until `resume()`. Does nothing under `kymo record`."""
        _kymograph.change("pause")

    def resume(self) -> None:
        """Goes on."""
        _kymograph.change("resume")

    def flush(self, timeout: float = 10.0) -> bool:
        """Writes everything recorded so far; waits for it, at most so many seconds. Whether that
        is done."""
        return _kymograph.flush(_milliseconds(timeout))

    def add_metadata(self, key: str, value: object) -> None:
        """Has the trace say something of itself: `kymograph.<pid>.<key>`."""
        _kymograph.metadata(key, str(value))

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = "the trace of kymo record" if self._adopted else self._path
        return f"<Recording: {where}{', ended' if self._summary is not None else ''}>"


def record(output: Path = "trace.pftrace", **config: Any) -> Recording:
    """Starts to record this process into a file: scopes, and what else Kymograph knows of it
    (operators of PyTorch, devices, libraries that annotate).

    `output` may end in .gz or .zst; `%p` in it becomes the process id. Further options are those
    of `kymo record --set` in small letters: `buffer="128M"`, `categories="*,-debug"`,
    `flush="50ms"`, `pytorch="shapes"`, `python="functions"` and so on; `kymo record --help` lists
    them.

    Under `kymo record` its trace takes everything, and this starts nothing.

    Raises Error if an option is wrong, the output cannot be written, or something records this
    process already.
    """
    path = os.fspath(output)
    adopted = start({"output": path, **config})
    calls = config.get("python") not in (None, "off")
    return Recording(path.replace("%p", str(os.getpid())), adopted, calls)


def start(config: dict[str, Any], closed: bool = False) -> bool:
    """Starts a recording. Whether it is that of `kymo record`."""
    # Its threads' names are found where it has them.
    import threading  # noqa: F401

    from . import _inputs

    adopted = _kymograph.start(library(), options(config), closed)
    _watch_forks()
    _inputs.check(config, adopted)
    return adopted


_watches_forks = False
# The child of multiprocessing that writes its last events.
_finishes = 0


def _finish() -> None:
    _kymograph.flush(2000)


def _finish_as_child(_: object = None) -> None:
    global _finishes
    if _finishes != os.getpid():
        from multiprocessing import util

        util.Finalize(None, _finish, exitpriority=-100)
        _finishes = os.getpid()


def _watch_forks() -> None:
    """Has children of multiprocessing write their last events: those that are forked end by
    os._exit, of which a library that is loaded at run time does not hear."""
    global _watches_forks
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        _finish_as_child()
    if _watches_forks:
        return
    _watches_forks = True

    def in_child() -> None:
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            # Multiprocessing forgets what was registered before, and then calls this.
            try:
                util.register_after_fork(_finish, _finish_as_child)
            except Exception:
                pass

    os.register_at_fork(after_in_child=in_child)


def flight_recorder(
    seconds: float = 30,
    dump_on: str | None = None,
    output: Path = "trace.pftrace",
    memory: str | None = None,
    **config: Any,
) -> Recording:
    """Records, and keeps only the last seconds, in memory; writes them when `dump()` is called,
    and by itself on what `dump_on` lists: `exit`, `crash`, `panic`, `abort`, or slices that take
    too long, such as `ProfilerStep#*>250ms`; several with commas. Without it, `exit,crash`.

    Dumps are files beside `output`: `trace.1.pftrace` and so on; what `exit` writes is `output`
    itself. `memory` is how much it may take ("256M"); older events go first. Raises as `record`.
    """
    if not seconds > 0:
        raise ValueError(f"seconds is a number above 0, not {seconds!r}")
    flight = {"flight": f"{round(seconds * 1000)}ms", "dump_on": dump_on, "flight_memory": memory}
    return record(output, **flight, **config)


def dump(path: Path | None = None, timeout: float = 10.0) -> None:
    """Has the flight recorder write what it holds, while it goes on: to `path`, or into the next
    of the numbered files beside its output. Waits for it, at most `timeout` seconds.

    Raises Error if no flight recorder runs, the file cannot be written or it takes too long.
    """
    _kymograph.dump(None if path is None else os.fspath(path), _milliseconds(timeout))


def arm(**config: Any) -> None:
    """Lets this process be asked for traces from now on: by `kymo ps`, `kymo trigger` and
    `kymo record --pid`. Nothing is recorded until then. Options are those of `record`, for
    requests that say nothing else. Raises Error if that cannot be.
    """
    _kymograph.arm(library(), options(config))
    _watch_forks()


def step() -> None:
    """Says that an iteration of the program ends and the next begins: they are ranges
    (`ProfilerStep#1`) in every trace, and traces can be asked for by their number."""
    _kymograph.step()


def is_recording() -> bool:
    """Whether this process is being recorded."""
    return _kymograph.is_recording()


def thread_name(name: str) -> None:
    """Names the thread that calls it in the trace. Threads of `threading` have their names."""
    _kymograph.thread_name(name)


def process_name(name: str) -> None:
    """Names this process in the trace; without it, it is called after its command line."""
    _kymograph.process_name(name)


class async_scope:
    """A slice that may cross others, and end on another thread or in another task:

        async with ky.async_scope("request", id=7): ...
        s = ky.async_scope("job").begin(); ...; s.end(status="done")

    It lies on the track of the asyncio task in which it begins, or on one of its category. Use it
    where a `with` block is left and entered again in between: generators, greenlets, callbacks.
    """

    __slots__ = ("_args", "_category", "_name", "_range")

    def __init__(self, name: str, /, *, category: str = "app", **args: Any) -> None:
        self._name, self._category, self._args, self._range = name, category, args, 0

    def begin(self) -> async_scope:
        """Begins it; one that runs already ends first."""
        self.end()
        self._range = _kymograph.range_begin(self._name, self._category, self._args)
        return self

    def end(self, **args: Any) -> None:
        """Ends it, with further arguments. Once it has ended, nothing happens."""
        range, self._range = self._range, 0
        if range:
            _kymograph.range_end(range, args)

    def __enter__(self) -> async_scope:
        return self.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.end()
        else:
            self.end(exception=kind.__name__)

    async def __aenter__(self) -> async_scope:
        return self.begin()

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.__exit__(kind, error, traceback)


if TYPE_CHECKING:

    @overload
    def trace(function: F, /) -> F: ...

    @overload
    def trace(
        function: str | None = None, /, *, category: str = "app", **args: Any
    ) -> Callable[[F], F]: ...


def trace(function: Any = None, /, *, category: str = "app", **args: Any) -> Any:
    """Decorator: a slice for each call of a function, called after it or as the decorator says.

        @ky.trace
        @ky.trace("load", category="io", source="disk")

    Coroutines and generators are slices from their first step to their last one, on a track of
    their own where they take turns.
    """
    if not callable(function):
        name = function

        def decorate(function: Any) -> Any:
            return _traced(function, name or function.__qualname__, category, args)

        return decorate
    return _traced(function, function.__qualname__, category, args)


def _traced(function: Any, name: str, category: str, args: dict[str, Any]) -> Any:
    import functools
    import inspect

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*given: Any, **named: Any) -> Any:
            with async_scope(name, category=category, **args):
                return await function(*given, **named)

        return coroutine
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def stream(*given: Any, **named: Any) -> Any:
            with async_scope(name, category=category, **args):
                generator = function(*given, **named)
                resume: Any = generator.asend
                value: Any = None
                while True:
                    try:
                        item = await resume(value)
                    except StopAsyncIteration:
                        return
                    try:
                        value = yield item
                    except GeneratorExit:
                        await generator.aclose()
                        raise
                    except BaseException as error:
                        resume, value = generator.athrow, error
                    else:
                        resume = generator.asend

        return stream
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*given: Any, **named: Any) -> Any:
            with async_scope(name, category=category, **args):
                return (yield from function(*given, **named))

        return generator
    if category != "app":
        args = {"category": category, **args}
    if not args:
        # A name that comes for the second time is kept.
        scope(name)
        plain = scope(name)

        @functools.wraps(function)
        def called(*given: Any, **named: Any) -> Any:
            with plain:
                return function(*given, **named)

        return called

    @functools.wraps(function)
    def called_with_args(*given: Any, **named: Any) -> Any:
        with scope(name, **args):
            return function(*given, **named)

    return called_with_args


def _milliseconds(seconds: float) -> int:
    return max(0, min(int(seconds * 1000), 2**32 - 1))


def _describe(value: Any) -> str:
    """A text for a value that is neither a number nor a text. A tensor is not asked for what is
    in it, for which its device would have to be waited for."""
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and shape:
            dtype = getattr(value, "dtype", "")
            return f"{type(value).__name__}{tuple(shape)} {dtype}".rstrip()
        if hasattr(value, "is_cuda") or hasattr(value, "is_leaf"):
            return type(value).__name__
        text = str(value)
        return text if len(text) <= 4096 else text[:4093] + "..."
    except Exception:
        return f"<{type(value).__name__}>"
