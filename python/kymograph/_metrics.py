"""The metrics of `kymo analyze` as methods. Made by python/generate.py: do not edit."""

from __future__ import annotations

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._table import Table
    from ._trace import Trace


class Metrics:
    """A method for each metric. An option that is None has its default.

    Options of every metric:
      ranks: Only these ranks; all.
      steps: Only this profiler step, or the steps from the first to the second, both included;
        all.
      devices: Only devices of these numbers; all.
      streams: Only these streams of devices; all.
      names: Only events whose names contain one of these; all.
      times: Only what happens between two times, in nanoseconds since the trace's first event;
        all.
      compat: The rules, the rounding and the column names of another tool: `hta`, `traceinsight`,
        `tensorboard`, `tensorboard-last` or `torch`; our own.
      rounding: With compat: round times to microseconds, as HTA does; True.
      last_step: With compat: keep the last step, as HTA does with include_last_profiler_step;
        False.
      sort: Order rows by this column: numbers from the largest down, texts from A to Z.
      limit: How many rows there may be; all.
    """

    def _metric(self, name: str, **options: Any) -> Table:
        raise NotImplementedError

    def _compare(self, name: str, other: Trace, **options: Any) -> Table:
        raise NotImplementedError

    def temporal_breakdown(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long each device computed, did something else, and was idle.

        Columns:
          rank (int): the rank
          idle_time (int, ns): no device event lasts
          compute_time (int, ns): a computing kernel lasts
          non_compute_time (int, ns): only communication, copies or fills last
          kernel_time (int, ns): from the first device event to the end of the last
          idle_time_pctg (float, %): idle_time of kernel_time
          compute_time_pctg (float, %): compute_time of kernel_time
          non_compute_time_pctg (float, %): non_compute_time of kernel_time
        """
        return self._metric(
            "temporal_breakdown",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernel_breakdown(
        self,
        *,
        num_kernels: int | None = None,
        duration_ratio: float | None = None,
        include_memory: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which kernels take the most time on each rank.

        Options, beside those of every metric (see `Metrics`):
          num_kernels: Names that are shown before the rest is folded into `others`; 10.
          duration_ratio: Names whose running sum lies beyond this quantile of running sums are
            folded, too; 0.8.
          include_memory: Whether copies and fills of memory count; True.

        Columns:
          name (str): the kernel; `others` for those that are folded
          count (int): how often it ran
          sum (int, ns): how long all of its runs took
          max (int, ns): the longest run
          min (int, ns): the shortest run
          stddev (float, ns): the standard deviation of runs; 0 for one run
          mean (float, ns): the mean of runs
          kernel_type (str): its kind
          rank (int): the rank
        """
        return self._metric(
            "kernel_breakdown",
            num_kernels=num_kernels,
            duration_ratio=duration_ratio,
            include_memory=include_memory,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernel_types(
        self,
        *,
        include_memory: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long computing, communication and memory work last, alone and together.

        Options, beside those of every metric (see `Metrics`):
          include_memory: Whether copies and fills of memory count; True.

        Columns:
          kernel_type (str): the kinds that last at the same time
          sum (int, ns): how long, over all ranks
          percentage (float, %): of the time in which any lasts
        """
        return self._metric(
            "kernel_types",
            include_memory=include_memory,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def user_annotations(
        self,
        *,
        num_kernels: int | None = None,
        duration_ratio: float | None = None,
        gpu_annotations: bool | None = None,
        allowlist: Sequence[str] | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long the ranges take that the program named, on devices or on the host.

        Options, beside those of every metric (see `Metrics`):
          num_kernels: Names that are shown before the rest is folded into `others`; 10.
          duration_ratio: Names whose running sum lies beyond this quantile of running sums are
            folded, too; 0.8.
          gpu_annotations: Annotations as devices saw them, not those of the host; True.
          allowlist: Names that contain one of these are never folded; none.

        Columns:
          name (str): the annotation; `others` for those that are folded
          count (int): how often it came
          sum (int, ns): how long it took altogether
          max (int, ns): the longest time
          min (int, ns): the shortest time
          stddev (float, ns): the standard deviation; 0 of one
          mean (float, ns): the mean
          rank (int): the rank
        """
        return self._metric(
            "user_annotations",
            num_kernels=num_kernels,
            duration_ratio=duration_ratio,
            gpu_annotations=gpu_annotations,
            allowlist=allowlist,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernel_annotations(
        self,
        *,
        num_kernels: int | None = None,
        duration_ratio: float | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which annotation each kernel belongs to.

        Options, beside those of every metric (see `Metrics`):
          num_kernels: Names that are shown before the rest is folded into `others`; 10.
          duration_ratio: Names whose running sum lies beyond this quantile of running sums are
            folded, too; 0.8.

        Columns:
          rank (int): the rank
          index (int): the place of the kernel in the trace
          name (str): the kernel
          ts (int, ns): when it began
          dur (int, ns): how long it took
          stream (int): the stream
          correlation (int): the number of its launch; -1 if there is none
          user_annotation (str): the annotation; null if there is none
        """
        return self._metric(
            "kernel_annotations",
            num_kernels=num_kernels,
            duration_ratio=duration_ratio,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def comm_comp_overlap(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How much of each rank's communication is hidden behind computing.

        Columns:
          rank (int): the rank
          overlap (int, ns): both last
          communication (int, ns): communication lasts
          comp_comm_overlap_pctg (float, %): overlap of communication; null if there is none
        """
        return self._metric(
            "comm_comp_overlap",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def idle_time(
        self,
        *,
        consecutive_kernel_delay: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Why each stream was idle: the host was late, launching took long, or it waited.

        Options, beside those of every metric (see `Metrics`):
          consecutive_kernel_delay: Gaps of a stream that are shorter, in nanoseconds, are the
            cost of launching; 30000.

        Columns:
          rank (int): the rank
          stream (int): the stream
          idle_category (str): why: see the metric
          idle_time (int, ns): the sum of gaps; activities that overlap count against it
          idle_time_ratio (float): of the stream's idle time
        """
        return self._metric(
            "idle_time",
            consecutive_kernel_delay=consecutive_kernel_delay,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def idle_intervals(
        self,
        *,
        consecutive_kernel_delay: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long the gaps between the activities of each stream were.

        Options, beside those of every metric (see `Metrics`):
          consecutive_kernel_delay: Gaps of a stream that are shorter, in nanoseconds, are the
            cost of launching; 30000.

        Columns:
          idle_category (str): why: see `idle_time`
          rank (int): the rank
          stream (int): the stream
          count (int): how many gaps
          mean (float, ns): their mean
          std (float, ns): their standard deviation
          min (float, ns): the shortest; below 0 where activities overlap
          25% (float, ns): a quarter is shorter
          50% (float, ns): half is shorter
          75% (float, ns): three quarters are shorter
          max (float, ns): the longest
        """
        return self._metric(
            "idle_intervals",
            consecutive_kernel_delay=consecutive_kernel_delay,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def launch_stats(
        self,
        *,
        include_memory: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long each launch took on the host, to reach the device, and on the device.

        Options, beside those of every metric (see `Metrics`):
          include_memory: Whether copies and fills of memory count; True.

        Columns:
          rank (int): the rank
          correlation (int): the number of the launch
          call (str): the call
          name (str): the work
          cpu_duration (int, ns): how long the call took
          gpu_duration (int, ns): how long the work took
          launch_delay (int, ns): from the call's end to the work's beginning; at least 0
        """
        return self._metric(
            "launch_stats",
            include_memory=include_memory,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def aten_delay(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long operators take to reach the device, by operator and kernels.

        Columns:
          rank (int): the rank
          aten_op_name (str): the operator
          kernel_sequence (str): its kernels, with ` -> ` between them
          occurrence_count (int): how often it launched these
          avg_aten_op_launch_delay (float, ns): the mean time before the first launch
          avg_runtime_delay (float, ns): the mean time from there to the kernel
        """
        return self._metric(
            "aten_delay",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def queue_length(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How many activities waited on each stream, over time.

        Columns:
          rank (int): the rank
          index (int): the place of the event in the trace
          ts (int, ns): when the length changes
          pid (int): the device
          tid (int): the stream, as the trace numbers it
          stream (int): the stream
          queue_length (int): the length from then on
        """
        return self._metric(
            "queue_length",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def queue_length_summary(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How many activities waited on each stream: mean, deviation, quartiles.

        Columns:
          rank (int): the rank
          stream (int): the stream
          count (int): how often the length changed
          mean (float): the mean after changes, however long they held
          std (float): their standard deviation
          min (float): the least
          25% (float): a quarter is less
          50% (float): half is less
          75% (float): three quarters are less
          max (float): the most
        """
        return self._metric(
            "queue_length_summary",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def blocked_on_queue(
        self,
        *,
        max_queue_length: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long the queue of each stream was full, so that launches had to wait.

        Options, beside those of every metric (see `Metrics`):
          max_queue_length: The length at which a launch queue is full; 1024.

        Columns:
          rank (int): the rank
          stream (int): the stream
          duration_at_max_queue_length (int, ns): how long it was full
          relative_duration_at_max_queue_length (float, 1): of the time of the trace
        """
        return self._metric(
            "blocked_on_queue",
            max_queue_length=max_queue_length,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_bandwidth(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How fast each kind of copy moved memory, over time.

        Columns:
          rank (int): the rank
          ts (int, ns): when the bandwidth changes
          pid (int): the device
          name (str): the kind of copy
          memory_bw_gbps (float, GB/s): the bandwidth from then on
        """
        return self._metric(
            "memory_bandwidth",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_bandwidth_summary(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How fast each kind of copy moved memory: mean, deviation, quartiles.

        Columns:
          rank (int): the rank
          name (str): the kind of copy
          count (int): how often the bandwidth changed to something above 0
          mean (float, GB/s): the mean after changes
          std (float, GB/s): their standard deviation
          min (float, GB/s): the least
          25% (float, GB/s): a quarter is less
          50% (float, GB/s): half is less
          75% (float, GB/s): three quarters are less
          max (float, GB/s): the most
        """
        return self._metric(
            "memory_bandwidth_summary",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def frequent_sequences(
        self,
        *,
        operator: str | None = None,
        min_pattern_len: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which sequences of kernels an operator launches most often.

        Options, beside those of every metric (see `Metrics`):
          operator: What the names of operators contain; needed.
          min_pattern_len: The fewest kernels of a sequence; 3.

        Columns:
          rank (int): the rank
          pattern (str): the operator and its kernels, with `|` between them
          count (int): how often it came
          gpu_kernel_duration (int, ns): how long the kernels took
          cpu_op_duration (int, ns): how long the operators took
        """
        return self._metric(
            "frequent_sequences",
            operator=operator,
            min_pattern_len=min_pattern_len,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def critical_path(
        self,
        *,
        annotation: str | None = None,
        instance: int | tuple[int, int] | None = None,
        scales: dict[str, float] | None = None,
        edges: Sequence[tuple[int, int, int]] | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """The chain of events that a step's duration is made of, edge by edge.

        Options, beside those of every metric (see `Metrics`):
          annotation: What the name of the annotation contains whose time is looked at; empty for
            the whole trace; ProfilerStep.
          instance: Which of these annotations, counted from 0, or the first and the last of
            several; 0.
          scales: What if events with such a text in their names took so many times as long; none.
          edges: What if the edge between two nodes of `critical_path_edges` took so many
            nanoseconds; none.

        Columns:
          rank (int): the rank
          ts (int, ns): when the edge begins
          event_idx (int): the place in the trace of the event whose time it is
          duration (int, ns): its weight
          type (str): the kind of edge
          name (str): the event
          pid (int): the process or the device of the event
          tid (int): the thread or the stream of the event
          stream (int): the stream; -1 on the host
          bound_by (str): what the time goes to; empty for edges without
        """
        return self._metric(
            "critical_path",
            annotation=annotation,
            instance=instance,
            scales=scales,
            edges=edges,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def critical_path_summary(
        self,
        *,
        annotation: str | None = None,
        instance: int | tuple[int, int] | None = None,
        scales: dict[str, float] | None = None,
        edges: Sequence[tuple[int, int, int]] | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What the critical path is bound by: host, computing, communication, launching.

        Options, beside those of every metric (see `Metrics`):
          annotation: What the name of the annotation contains whose time is looked at; empty for
            the whole trace; ProfilerStep.
          instance: Which of these annotations, counted from 0, or the first and the last of
            several; 0.
          scales: What if events with such a text in their names took so many times as long; none.
          edges: What if the edge between two nodes of `critical_path_edges` took so many
            nanoseconds; none.

        Columns:
          rank (int): the rank
          bound_by (str): what the time goes to
          edges (int): edges of the path
          duration (int, ns): their weight
          percentage (float, %): of the weight of the path
        """
        return self._metric(
            "critical_path_summary",
            annotation=annotation,
            instance=instance,
            scales=scales,
            edges=edges,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def critical_path_edges(
        self,
        *,
        annotation: str | None = None,
        instance: int | tuple[int, int] | None = None,
        scales: dict[str, float] | None = None,
        edges: Sequence[tuple[int, int, int]] | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """The graph in which the critical path is the longest: all edges.

        Options, beside those of every metric (see `Metrics`):
          annotation: What the name of the annotation contains whose time is looked at; empty for
            the whole trace; ProfilerStep.
          instance: Which of these annotations, counted from 0, or the first and the last of
            several; 0.
          scales: What if events with such a text in their names took so many times as long; none.
          edges: What if the edge between two nodes of `critical_path_edges` took so many
            nanoseconds; none.

        Columns:
          rank (int): the rank
          src_node (int): the node that it comes from
          dst_node (int): the node that it leads to
          src_ev (int): the place in the trace of the event that it comes from
          dst_ev (int): likewise, that it leads to
          src_ts (int, ns): when it begins
          dst_ts (int, ns): when it ends
          src_is_start (str): True if it comes from a beginning, False from an end
          dst_is_start (str): True if it leads to a beginning, False to an end
          type (str): the kind
          weight (int, ns): the time that it takes
          attributed_ev (int): the place in the trace of the event whose time it is
          critical (int): the place on the critical path, from 0; null if it is not on it
        """
        return self._metric(
            "critical_path_edges",
            annotation=annotation,
            instance=instance,
            scales=scales,
            edges=edges,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def counters(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Queue lengths and memory bandwidths over time, as counters for the trace.

        Columns:
          rank (int): the rank
          pid (int): the device
          ts (int, ns): when the value changes, on the trace's own clock
          name (str): the counter
          id (int): the stream; null for bandwidths
          value (float): the value from then on
        """
        return self._metric(
            "counters",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def diff(
        self,
        other: Trace,
        *,
        side: str | None = None,
        short_names: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What takes longer in one run than in another, by name.

        Compares `other` with this one, the base.

        Options, beside those of every metric (see `Metrics`):
          side: Only events of the `host` or of the `device`; both.
          short_names: Shorten the names of kernels, so that those of other types and shapes are
            one; False.

        Columns:
          name (str): the event; shortened with `short_names`
          base_counts (float): how often it came in BASE
          base_total_duration (float, ns): how long it took there
          test_counts (float): how often it came in TEST
          test_total_duration (float, ns): how long it took there
          diff_counts (float): second minus first
          diff_duration (float, ns): second minus first
          counts_change_categories (str): `+` if it came more often, `-` less often, or `=`
        """
        return self._compare(
            "diff",
            other,
            side=side,
            short_names=short_names,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def diff_tree(
        self,
        other: Trace,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What takes longer in one run than in another, module by module and by operator.

        Compares `other` with this one, the base.

        Columns:
          path (str): the place of the piece: 0 for all, 0-1 for the second piece of it
          operator (str): an operator in the piece; null for the piece itself
          base_name (str): what the piece is called in BASE
          test_name (str): likewise in TEST
          base_calls (int): how often the operator came; null for pieces
          test_calls (int): likewise in TEST
          base_duration (int, ns): how long it took on the host
          test_duration (int, ns): likewise in TEST
          base_device_duration (int, ns): how long its work took on devices
          test_device_duration (int, ns): likewise in TEST
          base_total_duration (int, ns): of pieces: on devices, else on the host
          test_total_duration (int, ns): likewise in TEST
          base_self_duration (int, ns): of operators: without those that it calls
          test_self_duration (int, ns): likewise in TEST
          base_self_device_duration (int, ns): of operators: likewise on devices
          test_self_device_duration (int, ns): likewise in TEST
        """
        return self._compare(
            "diff_tree",
            other,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def profiler_steps(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which steps the trace has, when each began, and how long it took.

        Columns:
          rank (int): the rank
          step (int): the number
          ts (int, ns): when it began
          duration (int, ns): how long it took on the host
        """
        return self._metric(
            "profiler_steps",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def stragglers(
        self,
        *,
        num_candidates: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which ranks begin collectives last, so that the others wait for them.

        Options, beside those of every metric (see `Metrics`):
          num_candidates: How many ranks may be named by HTA's rule; 2.

        Columns:
          rank (int): the rank; the likeliest straggler first
          times_last (int): collectives that it began last; HTA: steps in which it was late
          waited_for (int, ns): how long others waited in those
          waited (int, ns): how long it waited for others itself
        """
        return self._metric(
            "stragglers",
            num_candidates=num_candidates,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def cupti_counters(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What CUPTI's counters say of each kernel, and which operators launched it.

        Columns:
          rank (int): the rank
          index (int): the place of the measurement in the trace
          name (str): the kernel
          ts (int, ns): when it was measured
          dur (int, ns): how long that took
          counter (str): the counter
          value (float): what it counted
          op_stack (str): the operators around the launch, the outermost first, with ` > `
          top_level_op (str): the outermost; null if there is none
          bottom_level_op (str): the innermost; null if there is none
        """
        return self._metric(
            "cupti_counters",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def call_graph(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """For each event, who called it, how deep it lies, and what it launched.

        Columns:
          rank (int): the rank
          index (int): the place of the event in the trace
          name (str): the event
          parent (int): the place of the caller; minus the thread's number if there is none
          depth (int): how many callers it has; -1 for what is in no tree
          height (int): the longest way down to a leaf; 0 for device work
          num_kernels (int): device events below, itself included
          kernel_dur_sum (int, ns): how long those took
          kernel_span (int, ns): from the first one's beginning to the last one's end
          first_kernel_start (int, ns): when the first of them begins
          last_kernel_end (int, ns): when the last of them ends
        """
        return self._metric(
            "call_graph",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def call_stacks(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which threads have call trees, and what they are for.

        Columns:
          rank (int): the rank
          pid (int): the process
          tid (int): the thread
          label (str): main, bwd for backward, or the name of the first event
          stack_index (int): the number of the tree, over all ranks
          stack_root (int): minus the number of the thread in whose tree it lies
          count (int): the how manieth tree of that root it is
        """
        return self._metric(
            "call_stacks",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def collectives(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long each collective waited for its last rank and moved data, and how fast.

        Columns:
          group (str): the process group
          step (int): the step; -1 outside of steps
          sequence (int): its place among the collectives of the group and the step
          collective (str): what it does
          ranks (int): in how many of the traces it is
          group_size (int): how many ranks take part; null if the trace does not say
          message (int, bytes): the size of the larger of input and output
          ts (int, ns): when the first of the kernels began
          transfer (int, ns): the time of the rank that came last: how long moving took
          wait_max (int, ns): how long the rank that came first waited
          wait_sum (int, ns): how long all ranks together waited
          last_rank (int): the rank that came last; null where only one is there
          algorithm_bandwidth (float, GB/s): message by transfer
          bus_bandwidth (float, GB/s): corrected for what links carry
        """
        return self._metric(
            "collectives",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def distributed(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How each rank's steps divide into computing, overlap, communication and waiting.

        Columns:
          rank (int): the rank
          step (str): the step; all for the mean over steps; null outside of steps
          computation (float, ns): only computing kernels last
          overlapping (float, ns): computing kernels and communication last
          communication (float, ns): only communication lasts
          other (float, ns): neither lasts
          data_transfer (float, ns): of collectives: data moved
          synchronizing (float, ns): of collectives: waiting for the last rank
        """
        return self._metric(
            "distributed",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def distributed_operations(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How often each rank communicates, how much, and how long it takes and waits.

        Columns:
          rank (int): the rank
          operation (str): the collective
          calls (int): how often it came
          total_size (int, bytes): how much it moved, as far as known
          avg_size (float, bytes): that in the mean
          total_latency (int, ns): how long it took
          avg_latency (float, ns): that in the mean
          data_transfer (int, ns): how long data moved
          avg_data_transfer (float, ns): that in the mean
        """
        return self._metric(
            "distributed_operations",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernels(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which kernels ran how often and how long, on tensor cores or not, how well they fill
        the device.

        Columns:
          rank (int): the rank
          name (str): the kernel
          tensor_cores (str): Yes or No
          calls (int): how often it ran
          total_duration (int, ns): how long it ran
          mean_duration (float, ns): how long in the mean
          max_duration (int, ns): the longest time
          min_duration (int, ns): the shortest time
          mean_blocks_per_sm (float): blocks by multiprocessors, in the mean over time
          mean_occupancy (float, %): the estimated occupancy, in the mean over time
        """
        return self._metric(
            "kernels",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernels_by_operator(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which operator launched which kernels, with which grids, and how long they ran.

        Columns:
          rank (int): the rank
          name (str): the kernel
          operator (str): the operator that launched it; null if there is none
          grid (str): blocks of a launch; null if the trace does not say
          block (str): threads of a block; null if the trace does not say
          registers (int): registers of a thread; null if the trace does not say
          shared_memory (int): bytes of shared memory of a block; null likewise
          tensor_cores (str): Yes or No: whether the kernel uses them
          operator_eligible (str): Yes or No, by compat="tensorboard": whether the operator can
            use them; null without
          calls (int): how often it ran
          total_duration (int, ns): how long it ran; the longest first
          mean_duration (float, ns): how long in the mean
          max_duration (int, ns): the longest time
          min_duration (int, ns): the shortest time
          mean_blocks_per_sm (float): blocks by multiprocessors, in the mean over time
          mean_occupancy (float, %): the estimated occupancy, in the mean over time
        """
        return self._metric(
            "kernels_by_operator",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def overview(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What each step's time was spent on: kernels, copies, calls, the data loader.

        Columns:
          rank (int): the rank
          step (str): the step, or average
          kernel (float, ns): a kernel ran
          memcpy (float, ns): else, a copy ran
          memset (float, ns): else, a fill ran
          communication (float, ns): else, devices or ranks communicated
          runtime (float, ns): else, the host was in a call of the runtime or the driver
          data_loader (float, ns): else, it was in a data loader
          cpu_exec (float, ns): else, it was in an operator
          other (float, ns): none of these
          total (float, ns): the step's time
        """
        return self._metric(
            "overview",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def gpu_utilization(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How well kernels use each device: utilization, SM efficiency, occupancy.

        Columns:
          rank (int): the rank
          device (int): the device
          name (str): what it is; null if the trace does not say
          utilization (float, %): of the time, in which a kernel runs
          sm_efficiency (float, %): of multiprocessors and time, in which blocks run
          occupancy (float, %): the estimated occupancy, in the mean over kernels' time
          tensor_cores (float, %): of kernels' time, in which tensor cores are used
        """
        return self._metric(
            "gpu_utilization",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def recommendations(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What to do, with the numbers that say so and what it costs not to.

        Columns:
          rank (int): the rank; null if it is about all of them
          finding (str): what is the matter
          evidence (str): the numbers that say so
          advice (str): what may help
          cost (int, ns): the time that it costs each rank; null if that cannot be said
        """
        return self._metric(
            "recommendations",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def operators(
        self,
        *,
        python_functions: bool | None = None,
        python_rows: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which operators take the time, on the host and on devices, themselves and with all that
        they call.

        Options, beside those of every metric (see `Metrics`):
          python_functions: Let Python functions count as callees, as in a torch.profiler with
            verbose=True; False.
          python_rows: Whether Python functions have rows of their own; False.

        Columns:
          rank (int): the rank
          name (str): the operator, call, kernel or annotation
          input_shapes (str): the shapes of its inputs; null if not told apart
          stack (str): the Python functions around it, the innermost first; null if not told apart
          device_type (str): CPU, or what PyTorch calls the devices: CUDA, XPU, HPU, …
          is_user_annotation (int): 1 for ranges that the program named
          calls (int): how often it came
          self_cpu_time (float, ns): the time that it spent itself
          cpu_time_total (float, ns): the time that it took
          cpu_time_avg (float, ns): the time that it took in the mean
          self_device_time (float, ns): the time of work that it launched itself
          device_time_total (float, ns): the time of work that it and what it calls launched
          device_time_avg (float, ns): that in the mean
          cpu_memory (int, bytes): allocated less freed on the host
          self_cpu_memory (int, bytes): that by itself
          device_memory (int, bytes): allocated less freed on devices
          self_device_memory (int, bytes): that by itself
          flops (float): floating point operations by its shapes; null if the trace has none
          tensor_cores_eligible (str): Yes or No, by compat="tensorboard"; null without
          tensor_cores_self (float, %): of its own device time, likewise
          tensor_cores_total (float, %): of all of its device time, likewise
        """
        return self._metric(
            "operators",
            python_functions=python_functions,
            python_rows=python_rows,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def operators_by_shape(
        self,
        *,
        python_functions: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """The same by the shapes of their inputs.

        Options, beside those of every metric (see `Metrics`):
          python_functions: Let Python functions count as callees, as in a torch.profiler with
            verbose=True; False.

        Columns:
          rank (int): the rank
          name (str): the operator, call, kernel or annotation
          input_shapes (str): the shapes of its inputs; null if not told apart
          stack (str): the Python functions around it, the innermost first; null if not told apart
          device_type (str): CPU, or what PyTorch calls the devices: CUDA, XPU, HPU, …
          is_user_annotation (int): 1 for ranges that the program named
          calls (int): how often it came
          self_cpu_time (float, ns): the time that it spent itself
          cpu_time_total (float, ns): the time that it took
          cpu_time_avg (float, ns): the time that it took in the mean
          self_device_time (float, ns): the time of work that it launched itself
          device_time_total (float, ns): the time of work that it and what it calls launched
          device_time_avg (float, ns): that in the mean
          cpu_memory (int, bytes): allocated less freed on the host
          self_cpu_memory (int, bytes): that by itself
          device_memory (int, bytes): allocated less freed on devices
          self_device_memory (int, bytes): that by itself
          flops (float): floating point operations by its shapes; null if the trace has none
          tensor_cores_eligible (str): Yes or No, by compat="tensorboard"; null without
          tensor_cores_self (float, %): of its own device time, likewise
          tensor_cores_total (float, %): of all of its device time, likewise
        """
        return self._metric(
            "operators_by_shape",
            python_functions=python_functions,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def operators_by_stack(
        self,
        *,
        stack_depth: int | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """The same by the Python functions around them.

        Options, beside those of every metric (see `Metrics`):
          stack_depth: How many Python functions tell operators apart; 5.

        Columns:
          rank (int): the rank
          name (str): the operator, call, kernel or annotation
          input_shapes (str): the shapes of its inputs; null if not told apart
          stack (str): the Python functions around it, the innermost first; null if not told apart
          device_type (str): CPU, or what PyTorch calls the devices: CUDA, XPU, HPU, …
          is_user_annotation (int): 1 for ranges that the program named
          calls (int): how often it came
          self_cpu_time (float, ns): the time that it spent itself
          cpu_time_total (float, ns): the time that it took
          cpu_time_avg (float, ns): the time that it took in the mean
          self_device_time (float, ns): the time of work that it launched itself
          device_time_total (float, ns): the time of work that it and what it calls launched
          device_time_avg (float, ns): that in the mean
          cpu_memory (int, bytes): allocated less freed on the host
          self_cpu_memory (int, bytes): that by itself
          device_memory (int, bytes): allocated less freed on devices
          self_device_memory (int, bytes): that by itself
          flops (float): floating point operations by its shapes; null if the trace has none
          tensor_cores_eligible (str): Yes or No, by compat="tensorboard"; null without
          tensor_cores_self (float, %): of its own device time, likewise
          tensor_cores_total (float, %): of all of its device time, likewise
        """
        return self._metric(
            "operators_by_stack",
            stack_depth=stack_depth,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def operators_total(
        self,
        *,
        python_rows: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """All of them added up, as total_average() does: what calls another counts twice.

        Options, beside those of every metric (see `Metrics`):
          python_rows: Whether Python functions have rows of their own; False.

        Columns:
          rank (int): the rank
          key (str): Total
          count (int): how many events there are
          self_cpu_time_total (float, ns): the time that they spent themselves
          cpu_time_total (float, ns): the time that they took
          self_device_time_total (float, ns): of work that they launched themselves
          device_time_total (float, ns): of work that they and what they call launched
          cpu_memory_usage (int, bytes): allocated less freed on the host
          self_cpu_memory_usage (int, bytes): that by themselves
          device_memory_usage (int, bytes): allocated less freed on devices
          self_device_memory_usage (int, bytes): that by themselves
          flops (float): floating point operations
        """
        return self._metric(
            "operators_total",
            python_rows=python_rows,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_statistics(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How much memory operators allocate and leave behind, themselves and with all that they
        call.

        Columns:
          rank (int): the rank
          device (str): whose memory it is: CPU, GPU0, …
          operator (str): the operator; null for what happens outside of all
          calls (int): how often it came; null outside of operators
          size_increase (int, bytes): allocated less freed
          self_size_increase (int, bytes): that by itself
          allocation_count (int): how many allocations
          self_allocation_count (int): those by itself
          allocation_size (int, bytes): allocated; the most first
          self_allocation_size (int, bytes): that by itself
        """
        return self._metric(
            "memory_statistics",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_curve(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How much memory of each device is in use and reserved, over time.

        Columns:
          rank (int): the rank
          device (str): whose memory it is: CPU, GPU0, …
          ts (int, ns): when it changes
          allocated (int, bytes): in use from then on
          reserved (int, bytes): held by the allocator, in use or not
        """
        return self._metric(
            "memory_curve",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_timeline(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What the memory of each device is used for over time: parameters, activations,
        gradients and others.

        Columns:
          rank (int): the rank
          device (str): whose memory it is: CPU, GPU0, …
          ts (int, ns): when it changes
          category (str): what the memory is for: see the metric
          allocated (int, bytes): in use for that from then on
        """
        return self._metric(
            "memory_timeline",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def memory_events(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Which operator allocated how much, when, and how long it was held.

        Columns:
          rank (int): the rank
          device (str): whose memory it is: CPU, GPU0, …
          operator (str): the operator that allocated it; null if there is none
          caller (str): the operator around that; null if there is none
          category (str): what it is for, as `memory_timeline` says; null by the plugin's rules
          size (int, bytes): how much
          allocation_ts (int, ns): when it was allocated; null if before the trace
          release_ts (int, ns): when it was freed; null if after the trace
          duration (int, ns): how long it was held; null if that is not known
        """
        return self._metric(
            "memory_events",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def modules(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How long each module of a model takes, on the host and on devices.

        Columns:
          rank (int): the rank
          module (str): the module
          module_id (int): its number among the modules of its kind; null if not known
          path (str): it and the modules around it, the outermost first, with ` > ` between
          depth (int): how many modules are around it
          occurrences (int): how often it was called
          operators (int): how many operators it called directly
          host_duration (int, ns): how long its calls took
          self_host_duration (int, ns): that without modules and operators that it called
          device_duration (int, ns): how long the work took that was launched in it
          self_device_duration (int, ns): that of operators that it called directly
          avg_duration (float, ns): a call on devices in the mean, or on the host if 0
        """
        return self._metric(
            "modules",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def stacks(
        self,
        *,
        weight: str | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Where time goes by call stack: the input of flame graphs.

        Options, beside those of every metric (see `Metrics`):
          weight: Which time stacks have: that of the `host` or of the `device`; host.

        Columns:
          rank (int): the rank
          stack (str): names with `;` between them, the outermost first
          count (int): how many events have it
          host_time (int, ns): how long those took, without what they call
          device_time (int, ns): how long the work took that they launched
        """
        return self._metric(
            "stacks",
            weight=weight,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def roofline(
        self,
        *,
        peak_flops: float | None = None,
        peak_bandwidth: float | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What operators achieve of what the device can compute and move, and the MFU.

        Options, beside those of every metric (see `Metrics`):
          peak_flops: What the device computes at most per second; that of the table of devices.
          peak_bandwidth: How many bytes its memory moves at most per second; likewise.

        Columns:
          rank (int): the rank
          operator (str): the operator; (all) and (without rule): see the metric
          precision (str): the numbers it works with: fp64, fp32, tf32, fp16, fp8
          calls (int): how often it came
          device_time (int, ns): how long its work took on the device; the largest first
          flops (float): floating point operations
          bytes (float, bytes): the least that has to be moved
          intensity (float): FLOPs per byte
          flops_per_second (float): achieved
          bandwidth (float, GB/s): achieved, of the least that has to be moved
          of_peak (float, %): achieved of what the device can compute in this precision
          of_roof (float, %): achieved of what is possible at this intensity
          bound (str): compute or memory; null if the device is not known
          device (str): the device whose peaks are meant; null if it is not known
        """
        return self._metric(
            "roofline",
            peak_flops=peak_flops,
            peak_bandwidth=peak_bandwidth,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def kernel_durations(
        self,
        *,
        include_memory: bool | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How the durations of each kernel are distributed: deviation, quartiles, extremes.

        Options, beside those of every metric (see `Metrics`):
          include_memory: Whether copies and fills of memory count; True.

        Columns:
          rank (int): the rank
          kernel_type (str): its kind
          name (str): the kernel, copy or fill
          count (int): how often it ran
          sum (int, ns): how long all of its runs took; the largest first
          mean (float, ns): the mean of runs
          std (float, ns): their standard deviation; null for one run
          min (float, ns): the shortest run
          25% (float, ns): a quarter of runs is shorter
          50% (float, ns): half of them is shorter
          75% (float, ns): three quarters are shorter
          99% (float, ns): ninety-nine hundredths are shorter
          max (float, ns): the longest run
        """
        return self._metric(
            "kernel_durations",
            include_memory=include_memory,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def idle_causes(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Why devices were idle: which call, operator or Python function ran meanwhile.

        Columns:
          rank (int): the rank
          device (int): the device
          cause (str): what kind of thing the host did: see the metric
          doing (str): the innermost event of the host; null if there is none
          operator (str): the innermost operator around it; null if there is none
          python (str): the innermost Python function around it; null if there is none
          idle_time (int, ns): how long the device was idle meanwhile; the longest first
          percentage (float, %): of the device's idle time
          gaps (int): in how many gaps
          longest (int, ns): the longest stretch of it
          longest_ts (int, ns): when that began
        """
        return self._metric(
            "idle_causes",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def step_variance(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """How much steps differ in duration, computing, communication and idle time.

        Columns:
          rank (int): the rank
          quantity (str): what is measured: see the metric
          steps (int): how many steps there are
          mean (float, ns): the mean over steps
          std (float, ns): the standard deviation; null for one step
          variation (float, %): the standard deviation, of the mean
          min (float, ns): the least
          25% (float, ns): a quarter of steps has less
          50% (float, ns): half of them has less
          75% (float, ns): three quarters have less
          max (float, ns): the most
          slowest_step (int): the step that has the most
        """
        return self._metric(
            "step_variance",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def slowest_step(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What takes longer in each rank's slowest step than in its other steps.

        Columns:
          rank (int): the rank
          step (int): the slowest step
          side (str): host or device
          name (str): the event
          count (int): how often it comes in the slowest step
          median_count (float): how often in another step
          time (int, ns): how long it takes there, without what it calls
          median_time (float, ns): how long in another step
          difference (float, ns): how much longer; the largest first
        """
        return self._metric(
            "slowest_step",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def regressions(
        self,
        other: Trace,
        *,
        fail_above: float | None = None,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Whether steps became slower from one run to another, and what made them so.

        Compares `other` with this one, the base.

        Options, beside those of every metric (see `Metrics`):
          fail_above: How much slower, as a part of one, steps may become; 0.03.

        Columns:
          kind (str): step, device or host
          name (str): duration or a part of it; the name of the work or the event
          base_steps (int): how many steps BASE has
          test_steps (int): how many steps TEST has
          base (float, ns): the mean over steps of BASE
          test (float, ns): the mean over steps of TEST
          difference (float, ns): how much longer in TEST
          change (float, %): the difference, of BASE
          low (float, %): the change is at least so much, with a confidence of 95 %
          high (float, %): likewise at most
          p (float): how likely steps that do not differ are as far apart
          verdict (str): regression, slower, same, faster, unclear or too few steps
        """
        return self._compare(
            "regressions",
            other,
            fail_above=fail_above,
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def antipatterns(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What the program does at a cost and need not do, and where in it.

        Columns:
          rank (int): the rank
          pattern (str): what it is: see the metric
          location (str): the Python function in which it is; null if the trace has none
          operator (str): the first event that is meant
          count (int): how often it comes there
          host_time (int, ns): how long these events take on the host
          device_time (int, ns): how long the work takes that they launch
          first_ts (int, ns): when the first of them begins
          advice (str): what to do instead
        """
        return self._metric(
            "antipatterns",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def data_quality(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Whether the trace can be trusted, and what it lacks for other metrics.

        Columns:
          rank (int): the rank
          check (str): what was looked at
          verdict (str): ok, note or problem
          count (int): how many there are
          of (int): of how many; null where that has no meaning
          time (int, ns): how long it is about, altogether; null where that has no meaning
          first_ts (int, ns): when the first one begins; null if there is none
          example (str): the first one; null if there is none
          meaning (str): what it means
        """
        return self._metric(
            "data_quality",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def validate(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Whether the trace keeps the six rules of PyTorch's trace validator.

        Columns:
          rank (int): the rank
          rule (str): the rule
          verdict (str): passed, violated, or nothing to check
          checked (int): how many things the rule is about
          violations (int): how many violations
          example (str): the first violation; null if there is none
        """
        return self._metric(
            "validate",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )

    def violations(
        self,
        *,
        ranks: Sequence[int] | None = None,
        steps: int | tuple[int, int] | None = None,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        times: tuple[int, int] | None = None,
        compat: str | None = None,
        rounding: bool | None = None,
        last_step: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """What breaks the rules of PyTorch's trace validator, one by one.

        Columns:
          rank (int): the rank
          rule (str): the rule
          ts (int, ns): when what breaks it begins; null where it is about several events
          message (str): what breaks it
        """
        return self._metric(
            "violations",
            ranks=ranks,
            steps=steps,
            devices=devices,
            streams=streams,
            names=names,
            times=times,
            compat=compat,
            rounding=rounding,
            last_step=last_step,
            sort=sort,
            limit=limit,
        )
