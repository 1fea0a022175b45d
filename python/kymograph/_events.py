"""Events of a trace and their averages, as `torch.autograd.profiler_util` has them."""

from __future__ import annotations

import os

from . import _kymograph

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._table import Table
    from ._trace import Trace

# Categories that torch.profiler has events of, too.
_HOST = ("cpu_op", "user_annotation", "python_function", "app", "cuda_runtime", "cuda_driver")

# By the names that torch.profiler has had for them over the years.
_SORTS = {
    "cpu_time": "cpu_time",
    "cuda_time": "device_time",
    "device_time": "device_time",
    "cpu_time_total": "cpu_time_total",
    "cuda_time_total": "device_time_total",
    "device_time_total": "device_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    "self_cuda_time_total": "self_device_time_total",
    "self_device_time_total": "self_device_time_total",
    "cpu_memory_usage": "cpu_memory_usage",
    "cuda_memory_usage": "device_memory_usage",
    "device_memory_usage": "device_memory_usage",
    "self_cpu_memory_usage": "self_cpu_memory_usage",
    "self_cuda_memory_usage": "self_device_memory_usage",
    "self_device_memory_usage": "self_device_memory_usage",
    "count": "count",
}


class Interval:
    """From when to when an event lasts: microseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long that is."""
        return self.end - self.start


class _Times:
    """What an event and an average have in common. Times are microseconds."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """The time on the host in the mean."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The time on devices in the mean."""
        return self.device_time_total / self.count if self.count else 0.0

    # What they were called when all devices were CUDA's.
    @property
    def cuda_time(self) -> float:
        """`device_time`."""
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        """`device_time_total`."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """`self_device_time_total`."""
        return self.self_device_time_total


class FunctionEvent(_Times):
    """An event: a range on a thread, or work of a device."""

    def __init__(self, id: int, name: str, thread: Any, span: Interval, device: int | None) -> None:
        self.id, self.name, self.key, self.trace_name = id, name, name, name
        self.thread, self.time_range, self.device_index = thread, span, device
        self.device_type = "CPU" if device is None else "CUDA"
        self.category, self.count, self.is_async = "", 1, False
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[FunctionEvent] = []
        elapsed = span.elapsed_us()
        self.cpu_time_total = elapsed if device is None else 0.0
        self.self_cpu_time_total = self.cpu_time_total
        self.self_device_time_total = 0.0 if device is None else elapsed
        self.device_time_total = self.self_device_time_total
        self.is_user_annotation = False
        self.input_shapes: Any = []
        self.concrete_inputs: Any = []
        self.kwinputs: dict[str, Any] = {}
        self.stack: list[str] = []

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name}: {self.time_range.elapsed_us():.3f} us>"


class FunctionEventAvg(_Times):
    """All events of a name."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.key, self.count = row["name"], row["calls"]
        self.cpu_time_total = row["cpu_time_total"] / 1000
        self.self_cpu_time_total = row["self_cpu_time"] / 1000
        self.device_time_total = row["device_time_total"] / 1000
        self.self_device_time_total = row["self_device_time"] / 1000
        self.cpu_memory_usage = row["cpu_memory"] or 0
        self.self_cpu_memory_usage = row["self_cpu_memory"] or 0
        self.device_memory_usage = row["device_memory"] or 0
        self.self_device_memory_usage = row["self_device_memory"] or 0
        self.device_type = row["device_type"]
        self.input_shapes = _json(row["input_shapes"])
        self.stack = (row["stack"] or "").split(";") if row["stack"] else []
        self.is_user_annotation = bool(row["is_user_annotation"])

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total:.3f}us cpu_time={self.cpu_time:.3f}us>"
        )


class EventList(list):  # type: ignore[type-arg]
    """Events, or averages of them."""

    def __init__(self, events: Any = (), traces: Any = (), profile_memory: bool = False) -> None:
        super().__init__(events)
        self._traces = list(traces)
        self._profile_memory = profile_memory

    @property
    def self_cpu_time_total(self) -> float:
        """All of the host's time: microseconds."""
        return float(sum(event.self_cpu_time_total for event in self))

    def total_average(self) -> _Times:
        """One average of all."""
        total = _Times()
        total.key, total.count = "Total", sum(event.count for event in self)
        for name in ("self_cpu_time_total", "self_device_time_total"):
            setattr(total, name, sum(getattr(event, name) for event in self))
        total.cpu_time_total = total.self_cpu_time_total
        total.device_time_total = total.self_device_time_total
        return total

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Averages by name."""
        return averages(self._traces, group_by_input_shapes, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace to a file, as JSON."""
        if not self._traces:
            raise RuntimeError("there is no trace")
        export(self._traces[-1].paths[0], os.fspath(path), {})

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The averages as a text: times with their units, and their shares of all."""
        rows = list(self)
        if sort_by is not None:
            attribute = _SORTS.get(sort_by)
            if attribute is None:
                raise ValueError(f"sort_by is one of {', '.join(_SORTS)}, not {sort_by!r}")
            rows.sort(key=lambda event: getattr(event, attribute, 0), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        if row_limit >= 0:
            shown = rows[:row_limit]
        else:
            shown = rows
        host = sum(event.self_cpu_time_total for event in self)
        work = sum(event.self_device_time_total for event in self if event.device_type != "CPU")
        work = work or sum(event.self_device_time_total for event in self)
        with_device = any(event.device_time_total or event.self_device_time_total for event in self)
        with_memory = any(
            getattr(event, name, 0)
            for event in self
            for name in ("cpu_memory_usage", "device_memory_usage")
        )
        with_shapes = any(getattr(event, "input_shapes", None) for event in self)
        with_stack = any(getattr(event, "stack", None) for event in self)
        names = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if with_device:
            names += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
        if with_memory:
            names += ["CPU Mem", "Self CPU Mem", "CUDA Mem", "Self CUDA Mem"]
        names.append("# of Calls")
        names += ["Input Shapes"] * with_shapes + ["Source Location"] * with_stack
        cells = []
        for event in shown:
            line = [
                _cut(event.key, max_name_column_width),
                _share(event.self_cpu_time_total, host),
                _time(event.self_cpu_time_total, time_unit),
                _share(event.cpu_time_total, host),
                _time(event.cpu_time_total, time_unit),
                _time(event.cpu_time, time_unit),
            ]
            if with_device:
                line += [
                    _time(event.self_device_time_total, time_unit),
                    _share(event.self_device_time_total, work),
                    _time(event.device_time_total, time_unit),
                    _time(event.device_time, time_unit),
                ]
            if with_memory:
                usage = ["cpu_memory_usage", "self_cpu_memory_usage"]
                usage += ["device_memory_usage", "self_device_memory_usage"]
                line += [_memory(getattr(event, name, 0)) for name in usage]
            line.append(str(event.count))
            if with_shapes:
                line.append(_cut(str(event.input_shapes or []), max_shapes_column_width))
            if with_stack:
                line.append(_cut((event.stack or [""])[0], max_src_column_width))
            cells.append(line)
        widths = [max(map(len, column)) for column in zip(names, *cells)]
        rule = "  ".join("-" * width for width in widths)
        lines = [header] if header else []
        lines += [rule, _line(names, widths), rule]
        lines += [_line(line, widths) for line in cells]
        lines += [rule, f"Self CPU time total: {_time(host, time_unit)}"]
        if with_device:
            lines.append(f"Self CUDA time total: {_time(work, time_unit)}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.table()


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))


def _cut(text: str, width: int | None) -> str:
    if width is not None and len(text) > width >= 3:
        return text[: width - 3] + "..."
    return text


def _share(part: float, all: float) -> str:
    return f"{part / all * 100:.2f}%" if all else "--"


def _time(us: float, unit: str | None = None) -> str:
    if unit == "s" or (unit is None and us >= 1e6):
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and us >= 1e3):
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _memory(bytes: float) -> str:
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(bytes) >= 1 << power:
            return f"{bytes / (1 << power):.2f} {unit}"
    return f"{bytes:.0f} B"


def _json(text: str | None) -> Any:
    import json

    try:
        return json.loads(text) if text else []
    except ValueError:
        return text


def _list(text: str) -> list[Any]:
    """A list, of JSON."""
    found = _json(text)
    return found if isinstance(found, list) else []


def _value(text: Any) -> Any:
    """An input that is no tensor, of its text: numbers and lists of them, and truths."""
    import ast

    try:
        return ast.literal_eval(text) if text else text
    except (ValueError, SyntaxError):
        return text


def averages(traces: list[Trace], by_shape: bool, stack: int) -> EventList:
    """Averages of all events of traces; of several, averages of the same name are added."""
    found: dict[Any, dict[str, Any]] = {}
    for trace in traces:
        options: dict[str, Any] = {"compat": "torch"}
        if stack > 0:
            table = trace.operators_by_stack(**options)
        elif by_shape:
            table = trace.operators_by_shape(**options)
        else:
            try:
                table = trace.operators(**options)
            except _kymograph.NoDataError:
                continue
        columns = table.to_pydict()
        for values in zip(*columns.values()):
            row = dict(zip(columns, values))
            if stack > 0 and row["stack"]:
                row["stack"] = ";".join(row["stack"].split(";")[:stack])
            key = (row["name"], row["device_type"], row["input_shapes"], row["stack"])
            before = found.get(key)
            if before is None:
                found[key] = row
                continue
            for name, value in row.items():
                if isinstance(value, (int, float)) and name not in ("rank", "is_user_annotation"):
                    before[name] = (before[name] or 0) + value
    return EventList(map(FunctionEventAvg, found.values()), traces)


def of(traces: list[Trace], stacks: bool) -> EventList:
    """All events of traces: by track, then by time."""
    events: list[FunctionEvent] = []
    for trace in traces:
        for rank in trace.ranks:
            events += _of(trace.events(rank), stacks)
    return EventList(events, traces)


def _of(table: Table, stacks: bool) -> list[FunctionEvent]:
    columns = table.to_pydict()
    rows: list[FunctionEvent] = []
    calls: dict[int, FunctionEvent] = {}
    works: list[tuple[int, FunctionEvent]] = []
    values = zip(*(columns[name] for name in table.column_names))
    for id, row in enumerate(values):
        name, category, start, dur, _, tid, _, device, _, number, shapes, inputs = row
        start /= 1000
        span = Interval(start, start + (dur or 0) / 1000)
        event = FunctionEvent(id, name, tid, span, device)
        event.category = category
        event.is_user_annotation = category == "user_annotation"
        if shapes is not None:
            event.input_shapes = _list(shapes)
        if inputs is not None:
            event.concrete_inputs = [_value(value) for value in _list(inputs)]
        rows.append(event)
        if number is not None and device is None:
            calls[number] = event
        elif number is not None:
            works.append((number, event))
    # What is around an event may be a later row: on another track.
    for event, parent in zip(rows, columns["parent"]):
        if parent is not None:
            around = rows[parent]
            event.cpu_parent = around
            around.cpu_children.append(event)
            # One that does not end in the trace has no time of its own to lose.
            if around.self_cpu_time_total:
                around.self_cpu_time_total -= event.cpu_time_total
    for number, event in works:
        if number in calls:
            _launched(calls[number], event)
    if stacks:
        for event in rows:
            outer = event.cpu_parent
            while outer is not None:
                if outer.category == "python_function":
                    event.stack.append(outer.name)
                outer = outer.cpu_parent
    return [event for event in rows if event.category in _HOST or event.device_index is not None]


def _launched(call: FunctionEvent, work: FunctionEvent) -> None:
    """A call has launched work: it is the operator's around it."""
    operator = call.cpu_parent or call
    operator.kernels.append(work)
    operator.self_device_time_total += work.self_device_time_total
    outer: FunctionEvent | None = operator
    while outer is not None:
        outer.device_time_total += work.self_device_time_total
        outer = outer.cpu_parent


def export(source: str, path: str, metadata: dict[str, tuple[str, bool]]) -> None:
    """Writes a trace to a file, in the format that its name says."""
    name = path[: -len(".gz")] if path.endswith(".gz") else path
    is_json = name.endswith(".json") or "." not in os.path.basename(name)
    if not is_json and not path.endswith(".gz"):
        import shutil

        if name.endswith((".pftrace", ".perfetto-trace")):
            shutil.copyfile(source, path)
            return
    target = path if name.endswith(".json") else path + ".json"
    _kymograph.convert(source, target)
    if metadata:
        _state(target, metadata)
    if target != path:
        os.replace(target, path)


def _state(path: str, metadata: dict[str, tuple[str, bool]]) -> None:
    """Puts what a program says of a trace where Kineto has it: at the top of the JSON."""
    import gzip
    import json
    import shutil

    opened: Any = gzip.open if path.endswith(".gz") else open
    pairs = (
        f"{json.dumps(key)}: {value if is_json else json.dumps(value)}"
        for key, (value, is_json) in metadata.items()
    )
    partial = path + ".partial"
    with opened(path, "rb") as source, opened(partial, "wb") as target:
        if source.read(1) != b"{":
            raise RuntimeError(f"{path}: not an object")
        target.write(("{" + ", ".join(pairs) + ", ").encode())
        shutil.copyfileobj(source, target)
    os.replace(partial, path)


def export_stacks(trace: Trace, path: str, metric: str) -> None:
    """Writes stacks with their times: `a;b;c 123`."""
    columns = {
        "self_cpu_time_total": "host_time",
        "self_cuda_time_total": "device_time",
        "self_device_time_total": "device_time",
    }
    if metric not in columns:
        raise ValueError(f"metric should be one of: {list(columns)}")
    table = trace.stacks()
    with open(path, "w", encoding="utf-8") as file:
        for stack, time in zip(table.column("stack"), table.column(columns[metric])):
            if time >= 1000:
                file.write(f"{stack.replace(' ', '_')} {time // 1000}\n")
