"""Tables of events as properties. Made by python/generate.py: do not edit."""

from __future__ import annotations

from ._metrics import Metrics

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._query import EventTable


class Tables(Metrics):
    """A table for each kind of event, of all ranks. It is made when it is first looked at.

    Columns that several have:
      rank (int): the rank
      start (int, ns): when it begins, from the first event of all ranks
      dur (int, ns): how long it takes
      name (str): what it is called
      device (int): the number of the device
      correlation (int): what joins a call with the work that it launched; null without
      step (int): the step; null outside of steps
      category (str): what it is switched on and off by
      pid (int): the process
      tid (int): the thread
    """

    def _table(self, name: str) -> EventTable:
        raise NotImplementedError

    @property
    def kernels(self) -> EventTable:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A row for each kernel, copy, fill and collective of a device.

        `t.kernels(...)` is the metric: which kernels ran how often and how long, on tensor cores
        or not, how well they fill the device.

        Columns: `rank`, `start`, `dur`, `name`, `device`, `correlation`, `step`, as above, and
          kind (str): kernel, memcpy, memset or communication
          class (str): COMPUTATION, COMMUNICATION, MEMORY or OTHER
          stream (int): the stream or queue of the device
          operator (str): the operator that launched it; null if none is known
        """
        return self._table("kernels")

    @property
    def calls(self) -> EventTable:
        """A row for each call of a device's runtime or driver library.

        Columns: `rank`, `start`, `dur`, `name`, `category`, `pid`, `tid`, `correlation`, `step`.
        """
        return self._table("calls")

    @property
    def operators(self) -> EventTable:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A row for each call of a framework's operator.

        `t.operators(...)` is the metric: which operators take the time, on the host and on
        devices, themselves and with all that they call.

        Columns: `rank`, `start`, `dur`, `name`, `pid`, `tid`, `step`, as above, and
          depth (int): how many operators are around it on its thread
          parent (str): the operator around it; null if there is none
        """
        return self._table("operators")

    @property
    def annotations(self) -> EventTable:
        """A row for each range of the host that is none of these: what the program names, and
        calls of Python.

        Columns: `rank`, `start`, `dur`, `name`, `category`, `pid`, `tid`, `correlation`, `step`.
        """
        return self._table("annotations")

    @property
    def collectives(self) -> EventTable:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A row for each collective and point-to-point operation, as a rank's device carries it
        out.

        `t.collectives(...)` is the metric: how long each collective waited for its last rank and
        moved data, and how fast.

        Columns: `rank`, `start`, `dur`, `step`, as above, and
          collective (str): what it does
          group (str): the process group
          sequence (int): its place among the collectives of the group and the step
          group_size (int): how many ranks take part; null if the trace does not say
          message (int, bytes): the larger of input and output
        """
        return self._table("collectives")

    @property
    def steps(self) -> EventTable:
        """A row for each step, as the host marks it.

        Columns: `rank`, `start`, `dur`, as above, and
          step (int): its number
        """
        return self._table("steps")

    @property
    def counters(self) -> EventTable:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A row for each value of a counter.

        `t.counters(...)` is the metric: queue lengths and memory bandwidths over time, as
        counters for the trace.

        Columns: `rank`, `name`, `device`, as above, and
          ts (int, ns): when, from the first event of all ranks
          value (float): the value, in the unit that `unit` says
          unit (str): ns, count, bytes or another; null if the trace does not say
        """
        return self._table("counters")

    @property
    def memory(self) -> EventTable:
        """A row for each allocation, with its release.

        Columns: `rank`, as above, and
          start (int, ns): when it was allocated; null if before the trace
          dur (int, ns): how long it was held; null if that is not known
          device (str): whose memory it is: CPU, GPU0, …
          size (int, bytes): how much
          operator (str): the operator that allocated it; null if there is none
        """
        return self._table("memory")

    @property
    def flows(self) -> EventTable:
        """A row for each arrow from one event to another.

        Columns: `rank`, as above, and
          kind (str): flow (the program's) or launch (from a call to its work)
          from_name (str): where it begins
          from_ts (int, ns): when that begins
          to_name (str): where it ends
          to_ts (int, ns): when that begins
        """
        return self._table("flows")
