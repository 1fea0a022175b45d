"""HTA's graph of the critical path, of our edges. Needs networkx, as HTA does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum

import networkx

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pandas

    from .hta import TraceAnalysis


class CPEdgeType(Enum):
    """Kinds of edges, as HTA names them."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


# Of what `CPGraph.save` writes.
_FORMAT = 1

# What an overlay draws as arrows: the others are the events themselves.
_DRAWN = (CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY)


@dataclass
class CPNode:
    """The beginning or the end of an event, which `ev_idx` numbers by its place in the trace."""

    idx: int = -1
    ev_idx: int = -1
    ts: int = 0
    is_start: bool = False


@dataclass(frozen=True)
class CPEdge:
    """From a node to a node: `weight` is a time in microseconds."""

    begin: int
    end: int
    weight: int = 0
    type: CPEdgeType = CPEdgeType.OPERATOR_KERNEL


class CPGraph(networkx.DiGraph):  # type: ignore[misc,unused-ignore]
    """The graph in which the critical path is the longest: nodes by number (HTA numbers them in
    another order), edges with `weight` and `object` (a CPEdge). `critical_path_nodes`, `critical_path_edges_set` and
    `critical_path_events_set` are what is on the path.

    What if something took another time: change weights (`graph.edges[u, v]["weight"] = 5`) and
    call `critical_path()`.
    """

    def _of(
        self, analysis: TraceAnalysis, rank: int, annotation: str, instance: Any
    ) -> CPGraph:
        self._analysis = analysis
        self._options = {"ranks": [rank], "annotation": annotation, "instance": instance}
        self.node_list: list[CPNode] = []
        self.event_to_start_node_map: dict[int, int] = {}
        self.event_to_end_node_map: dict[int, int] = {}
        self.edge_to_event_map: dict[tuple[int, int], int] = {}
        rows = analysis._frame("critical_path_edges", **self._options)
        self._nodes(rows)
        for row in rows.itertuples(index=False):
            u, v = int(row.src_node), int(row.dst_node)
            edge = CPEdge(u, v, row.weight, CPEdgeType(row.type))
            self.add_edge(u, v, weight=edge.weight, type=edge.type, object=edge)
            if edge.type is CPEdgeType.OPERATOR_KERNEL and row.attributed_ev == row.attributed_ev:
                self.edge_to_event_map[u, v] = int(row.attributed_ev)
        self._path(rows)
        return self

    def _nodes(self, rows: Any) -> None:
        found: dict[int, CPNode] = {}
        for row in rows.itertuples(index=False):
            for number, event, ts, start in (
                (row.src_node, row.src_ev, row.src_ts, row.src_is_start),
                (row.dst_node, row.dst_ev, row.dst_ts, row.dst_is_start),
            ):
                found[int(number)] = CPNode(int(number), int(event), ts, str(start) == "True")
        # Numbers without an edge are nodes that HTA has, and that lead nowhere.
        self.node_list = [found.get(n, CPNode(n)) for n in range(max(found, default=-1) + 1)]
        for node in found.values():
            places = self.event_to_start_node_map if node.is_start else self.event_to_end_node_map
            places[node.ev_idx] = node.idx

    def _path(self, rows: Any) -> None:
        """Takes the critical path from a table of edges."""
        path = rows[rows["critical"].notna()].sort_values("critical")
        ends = [int(node) for node in path["dst_node"]]
        self.critical_path_nodes = [int(node) for node in path["src_node"][:1]] + ends
        steps = zip(self.critical_path_nodes, self.critical_path_nodes[1:])
        self.critical_path_edges_set = {self.edges[step]["object"] for step in steps}
        nodes = self.critical_path_nodes
        self.critical_path_events_set = {self.node_list[node].ev_idx for node in nodes}

    def critical_path(self) -> bool:
        """Finds the path anew, with the weights that edges have by now."""
        changed = [(u, v, round(weight * 1000)) for u, v, weight in self._changed()]
        self._options["edges"] = changed or None
        self._path(self._analysis._frame("critical_path_edges", **self._options))
        return bool(self.critical_path_nodes)

    def _changed(self) -> list[tuple[int, int, float]]:
        """The edges whose weights are no longer those of the trace."""
        return [
            (u, v, edge["weight"])
            for u, v, edge in self.edges(data=True)
            if edge["weight"] != edge["object"].weight
        ]

    def get_critical_path_breakdown(self) -> pandas.DataFrame | None:
        """The edges of the path with the events that their time is spent in, and what each is
        bound by. There is no column `cat`, in which HTA has a number of its own."""
        if not self.critical_path_nodes:
            return None
        frame = self._analysis._frame("critical_path", **self._options)
        frame = frame.drop(columns=["rank", "ts"], errors="ignore")
        return frame.assign(index=frame["event_idx"])

    def summary(self) -> pandas.Series[float]:
        """What the path is bound by, in percent of its time."""
        frame = self.get_critical_path_breakdown()
        assert frame is not None, "there is no critical path"
        return frame.groupby("bound_by").duration.sum() / frame.duration.sum() * 100

    def save(self, out_dir: str) -> str:
        """Writes what tells this graph from others of its trace into `<out_dir>.zip`: the
        annotation, and the weights that were changed. `restore_cpgraph` reads it. Returns the path."""
        import json
        from zipfile import ZipFile

        content = {
            "format": _FORMAT,
            "options": {key: value for key, value in self._options.items() if key != "edges"},
            "last_step": self._analysis._last_step,
            "edges": self._changed(),
        }
        target = out_dir.rstrip("/") + ".zip"
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        with ZipFile(target, "w") as archive:
            archive.writestr("graph.json", json.dumps(content))
        return target

    def get_nodes_for_event(self, ev_id: int) -> tuple[CPNode | None, CPNode | None]:
        """The beginning and the end of an event, where it has them in the graph."""
        places = (self.event_to_start_node_map, self.event_to_end_node_map)
        start, end = (place.get(ev_id) for place in places)
        return (
            None if start is None else self.node_list[start],
            None if end is None else self.node_list[end],
        )

    def get_events_for_edge(self, edge: CPEdge) -> tuple[int, int]:
        """The events that an edge comes from and leads to."""
        return self.node_list[edge.begin].ev_idx, self.node_list[edge.end].ev_idx

    def get_event_attribution_for_edge(self, edge: CPEdge) -> int | None:
        """The event whose time an edge is; None of edges between events."""
        return self.edge_to_event_map.get((edge.begin, edge.end))

    def get_edges_attributed_to_event(self, ev_idx: int) -> list[CPEdge]:
        """The edges whose time is that of an event."""
        edges = (edge for edge, event in self.edge_to_event_map.items() if event == ev_idx)
        return [self.edges[edge]["object"] for edge in edges]


def restore_cpgraph(zip_filename: str, t_full: Any, rank: int) -> CPGraph:
    """The graph that `CPGraph.save` wrote: `t_full` is `t` of the analysis that it is of. ValueError for a file that `save` did not write."""
    import json
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(zip_filename) as archive:
            content = json.loads(archive.read("graph.json"))
        options, edges, last_step = (content[key] for key in ("options", "edges", "last_step"))
        if content["format"] != _FORMAT:
            raise ValueError("it has another format")
    except (BadZipFile, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{zip_filename} is no graph of CPGraph.save: {error}") from error
    from .hta import TraceAnalysis

    analysis = TraceAnalysis._of(t_full, last_step)
    graph = CPGraph()._of(analysis, rank, options["annotation"], options["instance"])
    for u, v, weight in edges:
        graph.edges[u, v]["weight"] = weight
    if edges:
        graph.critical_path()
    return graph


def overlay(
    graph: CPGraph, source: str, folder: str, only_critical: bool, all_edges: bool
) -> str:
    """Writes a trace in JSON with its critical path marked; returns its path."""
    import gzip
    import json

    if not source.endswith((".json", ".json.gz")):
        raise NotImplementedError(f"{source}: the path is drawn into JSON only; see `kymo analyze`")
    opened: Any = gzip.open if source.endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    for event in graph.critical_path_events_set:
        if event >= 0:
            events[event].setdefault("args", {})["critical"] = 1
    edges = list(graph.critical_path_edges_set)
    if all_edges and not only_critical:
        edges = [edge for _, _, edge in graph.edges(data="object")]
        if os.environ.get("CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE", "0") != "1":
            launch = CPEdgeType.KERNEL_LAUNCH_DELAY
            edges = [edge for edge in edges if edge.type is not launch or edge.weight]
    else:
        edges = [edge for edge in edges if edge.type in _DRAWN]
    arrows = []
    for number, edge in enumerate(edges):
        for node, phase in ((edge.begin, "s"), (edge.end, "f")):
            arrows.append(_arrow(graph, events, edge, graph.node_list[node], phase, number))
    if only_critical:
        kept = ("user_annotation", "python_function")
        trace["traceEvents"] = events = [
            event
            for event in events
            if event["ph"] != "X"
            or event.get("cat") in kept
            or event.get("args", {}).get("critical") == 1
        ]
    events += arrows
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, "overlaid_critical_path_" + os.path.basename(source))
    with opened(target, "wt", encoding="utf-8") as file:
        json.dump(trace, file)
    return target


def _arrow(
    graph: CPGraph, events: list[Any], edge: CPEdge, node: CPNode, phase: str, number: int
) -> dict[str, Any]:
    event = events[node.ev_idx]
    end = event["ts"] + event["dur"]
    if event.get("args", {}).get("device", -1) >= 0:
        # Viewers join an arrow with a slice only if it ends before that does.
        end -= min(1, event["dur"])
    arrow = {
        "ph": phase,
        "id": number,
        "pid": event["pid"],
        "tid": event["tid"],
        "ts": int(event["ts"] if node.is_start else end),
        "cat": edge.type.value,
        "name": "critical_path",
        "args": {"weight": int(edge.weight), "critical": edge in graph.critical_path_edges_set},
    }
    if phase == "f":
        arrow["bp"] = "e"
    return arrow
