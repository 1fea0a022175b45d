"""HolisticTraceAnalysis 0.5.0's class, over our metrics.

    from kymograph.compat.hta import TraceAnalysis      # was: from hta.trace_analysis import …

The methods, parameters and columns are HTA's, and so are the numbers: HTA's rules and rounding are
followed (docs/ANALYSIS.md). Results are pandas' data frames. What works on HTA's own frames raises
NotImplementedError. Nothing is drawn: `visualize` is passed over. `TimeSeriesTypes`, `CPGraph` and
`restore_cpgraph` are here as well, for notebooks that import them.
"""

from __future__ import annotations

import os
from enum import Flag, auto

from .. import _trace
from .._kymograph import NoDataError

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Sequence

    import pandas

    from ._critical_path import CPGraph

    Ranks = Optional[Sequence[int]]


class TimeSeriesTypes(Flag):
    """What `generate_trace_with_counters` adds to a trace."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


def __getattr__(name: str) -> Any:
    """What needs networkx is imported when it is used."""
    if name not in ("CPGraph", "restore_cpgraph"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _critical_path

    return getattr(_critical_path, name)


def _write(path: str, trace: Any) -> None:
    """Writes a trace in JSON, packed if its name says so."""
    import gzip
    import json

    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


class TraceAnalysis:
    """The ranks of a job: `trace_files` by rank, or all traces of the folder `trace_dir`.

    As in HTA, paths of `trace_files` are relative to `trace_dir`. The ranks of files must be those
    that their content says.
    """

    def __init__(
        self,
        trace_files: dict[int, str] | None = None,
        trace_dir: str = ".",
        include_last_profiler_step: bool | None = False,
    ) -> None:
        if trace_files is None:
            self.t = _trace.load(trace_dir)
        else:
            self.t = _trace.load(*(os.path.join(trace_dir, f) for f in trace_files.values()))
            if sorted(trace_files) != self.t.ranks:
                told = f"{sorted(trace_files)} were given, {self.t.ranks} are what the files say"
                raise ValueError(f"the ranks of trace_files are wrong: {told}")
        self._last_step = bool(include_last_profiler_step)

    @classmethod
    def _of(cls, trace: _trace.Trace, last_step: bool) -> TraceAnalysis:
        analysis = cls.__new__(cls)
        analysis.t, analysis._last_step = trace, last_step
        return analysis

    def _frame(self, metric: str, **options: Any) -> pandas.DataFrame:
        table = self.t.metric(metric, compat="hta", last_step=self._last_step, **options)
        return table.to_pandas()

    def _by_rank(self, metric: str, ranks: Ranks, **options: Any) -> dict[int, pandas.DataFrame]:
        # HTA takes the first rank where none is named.
        wanted = [0] if not ranks else ranks
        return {rank: self._frame(metric, ranks=[rank], **options) for rank in wanted}

    def _series(self, metric: str, ranks: Ranks) -> dict[int, pandas.DataFrame]:
        """As `_by_rank`, with times that count from the first event of all ranks. As in HTA, ranks
        without any are left out."""
        rows = {}
        for rank in self.t.ranks:
            try:
                rows[rank] = len(self._frame(metric, ranks=[rank]))
            except NoDataError:
                rows[rank] = 0
        if not any(rows.values()):
            return {}
        # Rank after rank.
        frame, first, found = self._frame(metric), 0, {}
        for rank, count in rows.items():
            found[rank] = frame.iloc[first : first + count].reset_index(drop=True)
            first += count
        return {rank: found[rank] for rank in ([0] if not ranks else ranks) if rows[rank]}

    def _described(
        self, metric: str, what: str, by: str, ranks: Ranks
    ) -> pandas.DataFrame | None:
        """Statistics as `DataFrame.describe` of a group has them: columns under a name. None, with
        a warning, where there is nothing of the kind."""
        import warnings

        import pandas

        try:
            frame = self._frame(metric, ranks=[0] if not ranks else ranks)
        except NoDataError as error:
            warnings.warn(str(error), stacklevel=3)
            return None
        frame = frame.set_index(["rank", by])
        frame.columns = pandas.MultiIndex.from_product([[what], frame.columns])
        return frame

    def get_temporal_breakdown(self, visualize: bool = True) -> pandas.DataFrame:
        """How long each rank computed, did something else and was idle: a row for each rank."""
        return self._frame("temporal_breakdown")

    def get_comm_comp_overlap(self, visualize: bool = True) -> pandas.DataFrame:
        """How much of each rank's communication lasts while it computes, in percent."""
        return self._frame("comm_comp_overlap")

    def get_profiler_steps(self) -> list[int]:
        """The numbers of the profiler steps that every rank has."""
        steps = self._frame("profiler_steps")
        return sorted({int(step) for step in steps["step"]})

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",
    ) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """The time of each kind of kernel, and of the longest kernels of each kind and rank."""
        memory = include_memory_kernels
        kernels = self._frame(
            "kernel_breakdown",
            duration_ratio=duration_ratio,
            num_kernels=num_kernels,
            include_memory=memory,
        )
        return self._frame("kernel_types", include_memory=memory), kernels

    def get_gpu_user_annotation_breakdown(
        self,
        use_gpu_annotation: bool = True,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pandas.DataFrame:
        """The time of each annotation of each rank, on devices or on the host."""
        return self._frame(
            "user_annotations",
            gpu_annotations=use_gpu_annotation,
            duration_ratio=duration_ratio,
            num_kernels=num_kernels,
            allowlist=allowlist_patterns,
        )

    def get_cuda_kernel_launch_stats(
        self,
        ranks: Ranks = None,
        runtime_cutoff: int = 50,
        launch_delay_cutoff: int = 100,
        include_memory_events: bool = True,
        visualize: bool = True,
    ) -> dict[int, pandas.DataFrame]:
        """For each launch how long the call and its work took, and how long it waited."""
        return self._by_rank("launch_stats", ranks, include_memory=include_memory_events)

    def get_idle_time_breakdown(
        self,
        ranks: Ranks = None,
        streams: list[int] | None = None,
        visualize: bool = True,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
        consecutive_kernel_delay: int = 30,
    ) -> tuple[pandas.DataFrame, pandas.DataFrame | None]:
        """Why streams are idle and for how long; and, if asked for, statistics of the gaps."""
        options = {
            "ranks": [0] if not ranks else ranks,
            "streams": streams,
            # HTA's are microseconds.
            "consecutive_kernel_delay": consecutive_kernel_delay * 1000,
        }
        idle = self._frame("idle_time", **options)
        if not show_idle_interval_stats:
            return idle, None
        return idle, self._frame("idle_intervals", **options).set_index("idle_category")

    def get_queue_length_summary(self, ranks: Ranks = None) -> pandas.DataFrame | None:
        """Statistics of the lengths of launch queues, by rank and stream."""
        return self._described("queue_length_summary", "queue_length", "stream", ranks)

    def get_memory_bw_summary(self, ranks: Ranks = None) -> pandas.DataFrame | None:
        """Statistics of the bandwidth of copies and fills, by rank and kind."""
        return self._described("memory_bandwidth_summary", "memory_bw_gbps", "name", ranks)

    def get_queue_length_time_series(self, ranks: Ranks = None) -> dict[int, pandas.DataFrame]:
        """The lengths of launch queues over time, by rank."""
        series = self._series("queue_length", ranks)
        return {rank: frame.set_index("index") for rank, frame in series.items()}

    def get_memory_bw_time_series(self, ranks: Ranks = None) -> dict[int, pandas.DataFrame]:
        """The bandwidth of copies and fills over time, by rank."""
        return self._series("memory_bandwidth", ranks)

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: dict[int, pandas.DataFrame]
    ) -> pandas.DataFrame | None:
        """Statistics of series that `get_queue_length_time_series` gave."""
        import pandas

        found = []
        for rank, frame in queue_length_dict.items():
            series = frame.assign(rank=rank)[["rank", "stream", "queue_length"]]
            found.append(series.groupby(["rank", "stream"]).describe())
        return pandas.concat(found) if found else None

    def get_time_spent_blocked_on_full_queue(
        self, queue_length_dict: dict[int, pandas.DataFrame], max_queue_length: int = 1024
    ) -> pandas.DataFrame | None:
        """How long queues were full, of the ranks that `queue_length_dict` has."""
        return self._frame(
            "blocked_on_queue",
            ranks=sorted(queue_length_dict),
            max_queue_length=max_queue_length,
        )

    def get_aten_op_kernels_and_delay(
        self, ranks: Ranks = None, sort_by: list[str] | None = None
    ) -> dict[int, pandas.DataFrame]:
        """The kernels of each operator, and how long they take to reach the device."""
        by = ["occurrence_count"] if sort_by is None else sort_by
        delays = self._by_rank("aten_delay", ranks)
        return {
            rank: frame.drop(columns="rank").sort_values(by, ascending=False, kind="stable")
            for rank, frame in delays.items()
        }

    def get_gpu_kernels_with_user_annotations(
        self, rank: int, expand_names: bool = True, shortern_names: bool = True
    ) -> pandas.DataFrame | None:
        """The annotation of each kernel, the innermost one: a row for each kernel. `name`, `cat` and
        `user_annotation` are numbers (-1 where there is no annotation), which `s_name`, `s_cat` and
        `s_user_annotation` spell out; without `expand_names` these are left out. Without
        `shortern_names` the names of kernels keep their arguments. None, with a warning, if there
        are no annotations on devices."""
        import warnings

        import pandas

        try:
            frame = self._frame("kernel_annotations", ranks=[rank])
        except NoDataError as error:
            warnings.warn(str(error), stacklevel=2)
            return None
        # HTA's kernels are what was launched: annotations are not.
        frame = frame[frame["correlation"] >= 0].reset_index(drop=True)
        if not shortern_names:
            whole = self.t.metric("kernel_annotations", ranks=[rank]).to_pandas()
            whole = whole.set_index("index")[["name", "user_annotation"]].loc[frame["index"]]
            frame["s_name"] = whole["name"].to_numpy()
            frame["s_user_annotation"] = whole["user_annotation"].to_numpy()
        memory = frame["s_name"].str.extract("^(Memcpy|Memset)", expand=False).str.lower()
        frame["s_cat"] = ("gpu_" + memory).fillna("kernel")
        for name in ("name", "cat", "user_annotation"):
            frame[name] = pandas.factorize(frame[f"s_{name}"])[0]
        frame["s_user_annotation"] = frame["s_user_annotation"].fillna("")
        frame["end"] = frame["ts"] + frame["dur"]
        if not expand_names:
            frame = frame.drop(columns=["s_name", "s_cat", "s_user_annotation"])
        return frame

    def get_potential_stragglers(
        self,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,
        straggler_identification_impl: Any = None,
    ) -> list[int]:
        """The ranks that others wait for, the likeliest first."""
        if straggler_identification_impl is not None:
            raise NotImplementedError("straggler_identification_impl works on HTA's own frames")
        options: dict[str, Any] = {"num_candidates": num_candidates}
        if profiler_steps:
            first, last = min(profiler_steps), max(profiler_steps)
            if sorted(set(profiler_steps)) != [*range(first, last + 1)]:
                raise NotImplementedError("profiler_steps follow each other, without gaps")
            options["steps"] = (first, last)
        return [int(rank) for rank in self._frame("stragglers", **options)["rank"]]

    def get_frequent_cuda_kernel_sequences(
        self,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = False,
        compress_other_kernels: bool = True,
    ) -> pandas.DataFrame:
        """The sequences of kernels that an operator launches most often. The trace in which HTA
        marks the first `top_k` is not written. Where there are none the frame is empty, as HTA's
        is, and a warning says why."""
        import warnings

        import pandas

        try:
            frame = self._frame(
                "frequent_sequences",
                operator=operator_name,
                min_pattern_len=min_pattern_len,
                ranks=[rank],
            )
        except NoDataError as error:
            warnings.warn(str(error), stacklevel=2)
            return pandas.DataFrame()
        return frame.drop(columns="rank", errors="ignore")

    def generate_trace_with_counters(
        self,
        time_series: Any = None,
        ranks: Ranks = None,
        output_suffix: str = "_with_counters",
    ) -> None:
        """Writes traces with queue lengths and bandwidths as counters, beside those that were
        loaded. `time_series` is HTA's TimeSeriesTypes, or None for both."""
        import gzip
        import json

        suffix = output_suffix or "_with_counters"
        paths = dict(zip(self.t.ranks, self.t.paths))
        for rank in [0] if not ranks else ranks:
            path = paths[rank]
            if not path.endswith((".json", ".json.gz")):
                raise NotImplementedError(f"{path}: counters are added to JSON only")
            opened: Any = gzip.open if path.endswith(".gz") else open
            with opened(path, "rt", encoding="utf-8") as file:
                content = json.load(file)
            content["traceEvents"] += self._counters(rank, time_series)
            _write(path.replace(".json", f"{suffix}.json"), content)

    def _counters(self, rank: int, time_series: Any) -> list[dict[str, Any]]:
        # HTA's own type or ours: they have the same names.
        kinds: Any = TimeSeriesTypes if time_series is None else type(time_series)
        wanted = kinds.QUEUE_LENGTH | kinds.MEMCPY_BANDWIDTH if time_series is None else time_series
        events = []
        columns = self.t.counters(compat="hta", ranks=[rank], last_step=self._last_step).to_pydict()
        names = list(columns)
        for values in zip(*columns.values()):
            row = dict(zip(names, values))
            is_queue = row["name"] == "Queue Length"
            if (kinds.QUEUE_LENGTH if is_queue else kinds.MEMCPY_BANDWIDTH) not in wanted:
                continue
            event = {"ph": "C", "cat": "gpu_counter", "name": row["name"], "pid": row["pid"]}
            event.update(ts=row["ts"], args={row["name"]: row["value"]})
            if row["id"] is not None:
                event["id"] = row["id"]
            events.append(event)
        return events

    def get_cupti_counter_data_with_operators(
        self, ranks: Ranks = None
    ) -> list[pandas.DataFrame]:
        """What CUPTI's counters say of each kernel: a frame for each rank, with a column for each
        counter, and the operators around the launch (`op_stack`, the outermost first)."""
        import warnings

        frames = []
        for rank in [0] if not ranks else ranks:
            try:
                frame = self._frame("cupti_counters", ranks=[rank])
            except NoDataError as error:
                warnings.warn(str(error), stacklevel=2)
                continue
            keys = ["index", "ts", "dur", "name", "top_level_op", "bottom_level_op", "op_stack"]
            keys = [key for key in keys if key in frame]
            filled = frame.fillna({key: "" for key in keys[3:]})
            wide = filled.pivot_table(index=keys, columns="counter", values="value", sort=False)
            wide = wide.reset_index().sort_values("ts", kind="stable").reset_index(drop=True)
            wide.columns.name = None
            wide["cat"] = "cuda_profiler_range"
            wide["op_stack"] = [stack.split(" > ") if stack else [] for stack in wide["op_stack"]]
            frames.append(wide)
        return frames

    def critical_path_analysis(
        self, rank: int, annotation: str, instance_id: int | tuple[int, int] | None
    ) -> tuple[CPGraph, bool] | None:
        """The critical path of a rank, within an annotation: which of those whose name contains
        the text, counted from 0, or the first and the last of several. A graph, and whether there
        is a path. None, with a warning, if there is no such annotation. Needs networkx."""
        import warnings

        from ._critical_path import CPGraph

        try:
            graph = CPGraph()._of(self, rank, annotation, instance_id)
        except NoDataError as error:
            warnings.warn(str(error), stacklevel=2)
            return None
        return graph, bool(graph.critical_path_nodes)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Writes the rank's trace with its critical path marked and drawn as arrows, into a
        folder, as `overlaid_critical_path_<name>`; returns its path. Traces in JSON only."""
        from ._critical_path import overlay

        source = dict(zip(self.t.ranks, self.t.paths))[rank]
        folder = os.path.expanduser(output_dir)
        only, all_edges = only_show_critical_events, show_all_edges
        return overlay(critical_path_graph, source, folder, only, all_edges)
