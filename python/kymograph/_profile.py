"""The interface of `torch.profiler`, on recordings that are written to disk while they run."""

from __future__ import annotations

import os
import time
from enum import Enum

from . import _kymograph, _record

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Optional

    from ._events import EventList
    from ._trace import Trace

    Handler = Callable[["profile"], Any]


class ProfilerActivity(Enum):
    """What to record: the host, or devices of a kind. All devices are recorded alike."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The host, and the kinds of devices that PyTorch finds here; before PyTorch is imported, those
    whose drivers are here. `activities` may have others: they are recorded where they are."""
    import sys

    found = {ProfilerActivity.CPU}
    torch = sys.modules.get("torch")
    if torch is None:
        if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"):
            found.add(ProfilerActivity.CUDA)
        return found
    for activity in set(ProfilerActivity) - found:
        kind = getattr(torch, activity.name.lower(), None)
        available = getattr(kind, "is_available", None)
        if available is not None and available():
            found.add(activity)
    return found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Which steps to record: after `skip_first` steps cycles of `wait` steps in which nothing
    happens, `warmup` steps in which sources are on and nothing is kept, and `active` steps that
    are recorded, into a trace of their own. `repeat` is how many cycles there are, 0 for no end.
    `skip_first_wait=1`: the first cycle has no `wait`.
    """
    if min(wait, warmup, repeat, skip_first, skip_first_wait) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        _warn("Profiler won't be using warmup, this can skew profiler results")

    def action(step: int) -> ProfilerAction:
        assert step >= 0
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class record_function:
    """A range that the program names: a context manager, and a decorator.

    with ky.record_function("forward"): ...
    """

    __slots__ = ("_scope", "args", "name")

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        args = {} if self.args is None else {"args": self.args}
        # Made here: one that is made while nothing is recorded has no arguments.
        self._scope = _kymograph.scope(self.name, category="user_annotation", **args)
        self._scope.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._scope.__exit__(kind, error, traceback)

    def __call__(self, function: Any) -> Any:
        args = {} if self.args is None else {"args": self.args}
        return _record.trace(self.name, category="user_annotation", **args)(function)


class trace_handler:
    """For `on_trace_ready`: traces in a folder, one for each cycle, which the recording writes
    there by itself: `runs/exp1/<host>_<pid>.<time>.pftrace`. Nothing is left to do at its end."""

    def __init__(
        self, folder: str | os.PathLike[str], worker_name: str | None = None, suffix: str = ".pftrace"
    ) -> None:
        self.folder, self.worker_name, self.suffix = os.fspath(folder), worker_name, suffix

    def target(self) -> str:
        """The path of the next trace."""
        os.makedirs(self.folder, exist_ok=True)
        return os.path.join(self.folder, f"{_worker(self.worker_name)}.{time.time_ns()}{self.suffix}")

    def __call__(self, prof: Any) -> None:
        if not isinstance(prof, profile):
            raise TypeError("kymograph.trace_handler is for kymograph.profile")


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Handler:
    """For `on_trace_ready`: traces as JSON in a folder, as TensorBoard's plugin expects them. They
    are converted at the end of each cycle, which takes time; `trace_handler` takes none."""

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        name = f"{_worker(worker_name)}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name + (".gz" if use_gzip else "")))

    return handler


def _worker(name: str | None) -> str:
    if name:
        return name
    import socket

    return f"{socket.gethostname()}_{os.getpid()}"


class profile:
    """Records the steps of a program that a schedule chooses: `torch.profiler.profile`.

        with ky.profile(schedule=ky.schedule(wait=5, warmup=1, active=3, repeat=2),
                        on_trace_ready=ky.trace_handler("runs/exp1")) as prof:
            for batch in loader:
                train(batch)
                prof.step()

    Events are written to disk while it runs, so that memory stays flat and the end of a cycle
    takes milliseconds. Without a `trace_handler` the file is a temporary one, from which
    `export_chrome_trace`, `events` and `key_averages` read; it goes with this object.

    `activities`: what to record, all by default. `record_shapes`: what operators are called with.
    `profile_memory`: allocations of tensors, under `kymo record` only. `with_stack`: calls of Python functions, which slow a
    program down a lot; so does `python="functions"`. `with_modules` or `python="modules"`: a slice
    for each call of a module. `acc_events`: `events` and `key_averages` are of all cycles, not of
    the last. Further options are those of `record`.

    Under `kymo record` its trace has everything, this writes no file, and `events` and
    `key_averages` are empty.

    Raises NotImplementedError for what it does not have: `with_flops`, `experimental_config`,
    `execution_trace_observer`, and `profile_memory` outside of `kymo record`.
    """

    def __init__(
        self,
        *,
        activities: Optional[Iterable[Any]] = None,
        schedule: Optional[Callable[[int], Any]] = None,
        on_trace_ready: Optional[Handler] = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: Optional[bool] = None,
        custom_trace_id_callback: Optional[Callable[[], str]] = None,
        python: Optional[str] = None,
        **config: Any,
    ) -> None:
        if with_flops:
            raise _missing("with_flops", "a trace has no numbers of operations")
        if experimental_config is not None:
            raise _missing("experimental_config", "it is Kineto's")
        if execution_trace_observer is not None:
            raise _missing("execution_trace_observer", "it is PyTorch's")
        if profile_memory and "KYMOGRAPH_CONTROL" not in os.environ:
            raise _missing(
                "profile_memory outside of kymo record",
                "PyTorch tells of allocations what is loaded before it; run the program with "
                "`kymo record --set PYTORCH_MEMORY=1`",
            )
        if python not in (None, "off", "functions", "modules"):
            raise ValueError(f'python is "off", "functions" or "modules", not {python!r}')
        wanted = list(ProfilerActivity) if activities is None else list(activities)
        self.activities = {ProfilerActivity[activity.name] for activity in wanted}
        if use_cuda is not None:
            _warn("use_cuda is deprecated, use activities argument instead")
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action: ProfilerAction | None = self._action()
        self._trace_id = custom_trace_id_callback
        self._config = {**config, **self._options(python)}
        self._modules = with_modules or python == "modules"
        self._calls = self._config.get("python") == "functions"
        self._metadata: dict[str, tuple[str, bool]] = {}
        self._running = self._adopted = False
        self._step_scope: record_function | None = None
        self._hooks: Any = None
        self._files: list[_File] = []
        self._path = ""
        self._loaded: Trace | None = None

    def _options(self, python: str | None) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if ProfilerActivity.CPU not in self.activities:
            options["pytorch"] = "off"
        elif self.record_shapes:
            options["pytorch"] = "shapes"
        if self.activities == {ProfilerActivity.CPU}:
            # Nothing of devices.
            options["activity_types"] = "cpu_op,user_annotation"
        if self.profile_memory:
            options["pytorch_memory"] = True
        if self.with_stack or python == "functions":
            options["python"] = "functions"
        return options

    def _action(self) -> ProfilerAction:
        return ProfilerAction[self.schedule(self.step_num).name]

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.stop()
        ends: Any = getattr(_step_tracker(), "erase_step_count", None)
        if ends is not None:
            ends("ProfilerStep")

    def start(self) -> None:
        """Begins, with the step that comes next."""
        begins: Any = getattr(_step_tracker(), "init_step_count", None)
        if begins is not None:
            begins("ProfilerStep")
        self.current_action = self._action()
        self._transit(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends; what is being recorded is written, and `on_trace_ready` called."""
        self._end_step()
        action, self.current_action = self.current_action, None
        if action is not None:
            self._transit(action, None)

    def step(self) -> None:
        """Says that a step of the program ends and the next begins."""
        if self.current_action is None:
            raise RuntimeError("the profiler is not running: step() belongs between start and stop")
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self._action()
        self._transit(before, self.current_action)
        self._count_step()
        self._begin_step()

    def _count_step(self) -> None:
        """Has PyTorch and Kymograph count the step: Kymograph for what others ask for, and under
        `kymo record`; not in a recording of this profiler, which has its own ranges for steps."""
        increment: Any = getattr(_step_tracker(), "increment_step", None)
        own = self._running and not self._adopted
        # Optimizers count, too: they and we are one number there.
        counts = getattr(increment, "counts_for_kymograph", False)
        if increment is not None and not (own and counts):
            increment("ProfilerStep")
        if not own and not counts:
            _kymograph.step()

    def _begin_step(self) -> None:
        if self.record_steps and self._running and not self._adopted:
            self._step_scope = record_function(f"ProfilerStep#{self.step_num}")
            self._step_scope.__enter__()

    def _end_step(self) -> None:
        scope, self._step_scope = self._step_scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _transit(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        none, warmup = ProfilerAction.NONE, ProfilerAction.WARMUP
        record, save = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
        if before is save or (before is record and after is None):
            self.stop_trace()
            self._trace_ready()
        elif before is record and after in (none, warmup):
            assert after is not None
            _warn(f"Incorrect schedule: RECORD followed by {after.name}")
            self.stop_trace()
        elif before is warmup and after in (none, None):
            if after is none:
                _warn("Incorrect schedule: WARMUP followed by NONE")
            self._discard()
        begins = before in (none, save) or (before is record and after is warmup)
        if begins and after in (warmup, record, save):
            self.prepare_trace()
        if after in (record, save) and before is not record:
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def prepare_trace(self) -> None:
        """Switches sources on, and keeps nothing yet."""
        target = getattr(self.on_trace_ready, "target", None)
        self._path = str(target()) if callable(target) else _temporary()
        config = {"output": self._path, **self._config}
        try:
            self._adopted = _record.start(config, closed=True)
        except BaseException:
            if not callable(target):
                os.unlink(self._path)
            raise
        self._running = True
        if self._adopted:
            _remove(self._path)
        elif not self.acc_events:
            self._files.clear()
        self._loaded = None
        if not self._adopted:
            self._files.append(_File(self._path, temporary=not callable(target)))
        for key, (value, _) in self._metadata.items():
            _kymograph.metadata(key, value)
        if self._trace_id is not None:
            _kymograph.metadata("trace_id", self._trace_id())

    def start_trace(self) -> None:
        """Records from now on."""
        if not self._running:
            self.prepare_trace()
        _kymograph.change("open")
        if self._modules and self._hooks is None:
            from . import _modules

            self._hooks = _modules.follow()

    def stop_trace(self) -> None:
        """Ends the recording, and writes what is left of it."""
        hooks, self._hooks = self._hooks, None
        if hooks is not None:
            hooks()
        if self._running:
            self._running = False
            if self._calls:
                _kymograph.forget_calls()
            _kymograph.stop()

    def _discard(self) -> None:
        self.stop_trace()
        if self._files and not self._adopted:
            self._files.pop().remove()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Records nothing for a while (`False`), or goes on. `activities` are all of the
        profiler's: parts of a recording cannot be switched."""
        wanted = {ProfilerActivity[activity.name] for activity in activities}
        if not wanted >= self.activities & {ProfilerActivity.CPU, ProfilerActivity.CUDA}:
            raise _missing("toggle_collection_dynamic of some activities", "switch all of them")
        if self._running:
            _kymograph.change("resume" if enable else "pause")

    def add_metadata(self, key: str, value: str) -> None:
        """Has the traces say something of themselves: a text."""
        self._add_metadata(key, str(value), False)

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same with a value that is JSON."""
        import json

        json.loads(value)
        self._add_metadata(key, value, True)

    preset_metadata_json = add_metadata_json

    def _add_metadata(self, key: str, value: str, is_json: bool) -> None:
        self._metadata[key] = (value, is_json)
        if self._running:
            _kymograph.metadata(key, value)

    def get_trace_id(self) -> str | None:
        """The id of the traces, if a callback gives one."""
        return None if self._trace_id is None else self._trace_id()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the last trace to a file: .json or .json.gz for Chrome's and Kineto's readers,
        .pftrace as it is. Under `kymo record` it warns, and writes nothing."""
        from . import _events

        source = self._finished()
        if source is not None:
            _events.export(source, os.fspath(path), self._metadata)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes stacks of names with their times in microseconds, for flame graphs.

        `metric` is `self_cpu_time_total` or `self_cuda_time_total` (`self_device_time_total`).
        """
        from . import _events

        trace = self._trace()
        if trace is not None:
            _events.export_stacks(trace, os.fspath(path), metric)

    def export_memory_timeline(self, path: str, device: Optional[str] = None) -> None:
        """Not here."""
        raise _missing("export_memory_timeline", "see kymograph.load(…).memory_curve()")

    def events(self) -> EventList:
        """All events of the last trace."""
        from . import _events

        return _events.of(self._traces(), self.with_stack)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of the last trace by name, and on request by the shapes of their inputs or by
        their innermost `group_by_stack_n` Python functions."""
        from . import _events

        if group_by_overload_name:
            raise _missing("group_by_overload_name", "names of overloads are not recorded")
        return _events.averages(self._traces(), group_by_input_shape, group_by_stack_n)

    def _finished(self) -> str | None:
        """The path of the last trace; None under `kymo record`."""
        if self._running and not self._adopted:
            raise RuntimeError("the trace is still being recorded: this needs its end")
        if self._adopted:
            _warn("kymo record writes the trace of this program: there is no other")
            return None
        if not self._files:
            raise RuntimeError("nothing was recorded: the profiler has not been started")
        return self._files[-1].path

    def _trace(self) -> Trace | None:
        path = self._finished()
        if path is None:
            return None
        if self._loaded is None:
            from ._trace import load

            self._loaded = load(path, progress=False)
        return self._loaded

    def _traces(self) -> list[Trace]:
        last = self._trace()
        if last is None:
            return []
        from ._trace import load

        return [load(file.path, progress=False) for file in self._files[:-1]] + [last]


def _step_tracker() -> Any:
    """PyTorch's own count of steps, for those who ask it; None without PyTorch."""
    import sys

    profiler = sys.modules.get("torch.autograd.profiler")
    return getattr(profiler, "KinetoStepTracker", None)


class _File:
    """A trace, which goes with this object if it is a temporary one."""

    def __init__(self, path: str, temporary: bool) -> None:
        import weakref

        self.path = path
        # Also when the program ends.
        self._finalizer = weakref.finalize(self, _remove_own, path, os.getpid())
        if not temporary:
            self._finalizer.detach()

    def remove(self) -> None:
        self._finalizer.detach()
        _remove(self.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _remove_own(path: str, pid: int) -> None:
    # A forked child has a copy of the object, but not of the file.
    if pid == os.getpid():
        _remove(path)


def _temporary() -> str:
    import tempfile

    descriptor, path = tempfile.mkstemp(".pftrace", "kymograph-")
    os.close(descriptor)
    return path


def _missing(what: str, why: str) -> NotImplementedError:
    return NotImplementedError(f"kymograph.profile has no {what}: {why}")


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, stacklevel=3)


def patch_torch_profiler() -> Callable[[], None]:
    """Has `torch.profiler.profile` be `kymograph.profile`, and its handlers ours: programs and
    libraries that use it (Lightning, Transformers, vLLM, SGLang) record through Kymograph. To be
    called before they import the name. Imports torch. Returns a function that takes it back.
    """
    import torch
    import torch.profiler as module
    from torch.profiler import profiler as inner

    places = [module, inner]
    before = [(place, "profile", place.profile) for place in places]
    if before[0][2] is profile:
        return lambda: None
    for place in places:
        place.profile = profile

    def restore() -> None:
        for place, name, original in before:
            setattr(place, name, original)

    assert torch.profiler.profile is profile
    return restore
