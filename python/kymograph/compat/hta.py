"""HolisticTraceAnalysis 0.5.0's class, over our metrics.

    from kymograph.compat.hta import TraceAnalysis      # was: from hta.trace_analysis import …

The methods, parameters and columns are HTA's, and so are the numbers: HTA's rules and rounding are
followed (docs/ANALYSIS.md). Results are pandas' data frames. What is not here raises
NotImplementedError and says what there is instead. Nothing is drawn: `visualize` is passed over.
"""

from __future__ import annotations

import os

from .. import _trace

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Sequence

    import pandas

    Ranks = Sequence[int] | None


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

    def _frame(self, metric: str, **options: Any) -> pandas.DataFrame:
        table = self.t.metric(metric, compat="hta", last_step=self._last_step, **options)
        return table.to_pandas()

    def _by_rank(self, metric: str, ranks: Ranks, **options: Any) -> dict[int, pandas.DataFrame]:
        # HTA takes the first rank where none is named.
        wanted = [0] if not ranks else ranks
        return {rank: self._frame(metric, ranks=[rank], **options) for rank in wanted}

    def _described(self, metric: str, what: str, by: str, ranks: Ranks) -> pandas.DataFrame:
        """Statistics as `DataFrame.describe` of a group has them: columns under a name."""
        import pandas

        frame = self._frame(metric, ranks=[0] if not ranks else ranks).set_index(["rank", by])
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

    def get_queue_length_summary(self, ranks: Ranks = None) -> pandas.DataFrame:
        """Statistics of the lengths of launch queues, by rank and stream."""
        return self._described("queue_length_summary", "queue_length", "stream", ranks)

    def get_memory_bw_summary(self, ranks: Ranks = None) -> pandas.DataFrame:
        """Statistics of the bandwidth of copies and fills, by rank and kind."""
        return self._described("memory_bandwidth_summary", "memory_bw_gbps", "name", ranks)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name not in _ELSEWHERE:
            raise AttributeError(f"'TraceAnalysis' object has no attribute '{name}'")
        raise NotImplementedError(f"{name} is not here: use kymograph.load(…).{_ELSEWHERE[name]}")


# Methods of HTA's that are missing, and what has their numbers.
_ELSEWHERE = {
    "get_potential_stragglers": 'stragglers(compat="hta")',
    "get_gpu_kernels_with_user_annotations": 'kernel_annotations(compat="hta")',
    "get_frequent_cuda_kernel_sequences": 'frequent_sequences(compat="hta")',
    "get_aten_op_kernels_and_delay": 'aten_delay(compat="hta")',
    "generate_trace_with_counters": 'counters(compat="hta")',
    "get_queue_length_time_series": 'queue_length(compat="hta")',
    "get_memory_bw_time_series": 'memory_bandwidth(compat="hta")',
    "get_queue_length_summary_from_time_series": 'queue_length_summary(compat="hta")',
    "get_time_spent_blocked_on_full_queue": 'blocked_on_queue(compat="hta")',
    "get_cupti_counter_data_with_operators": "metric(…): `kymo analyze --list` has all",
    "critical_path_analysis": 'critical_path(compat="hta")',
    "overlay_critical_path_analysis": 'critical_path_edges(compat="hta")',
}
