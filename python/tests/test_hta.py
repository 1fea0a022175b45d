"""`kymograph.compat.hta` has HTA's methods, parameters and numbers."""

import inspect

import pytest

pandas = pytest.importorskip("pandas")
theirs = pytest.importorskip("hta.trace_analysis").TraceAnalysis

import kymograph as ky  # noqa: E402
from kymograph.compat import hta  # noqa: E402

QUIET = {"visualize": False}


@pytest.fixture(scope="module")
def both(traces):
    files = {rank: next(traces.glob(f"*rank{rank}*")).name for rank in (0, 1)}
    folder = str(traces)
    return theirs(files, folder), hta.TraceAnalysis(files, folder)


def public(kind):
    return {n: f for n, f in inspect.getmembers(kind, inspect.isfunction) if n[0] != "_"}


def test_every_method_is_here():
    ours = public(hta.TraceAnalysis)
    assert set(public(theirs)) == set(ours)
    for name, method in ours.items():
        parameters = inspect.signature(method).parameters
        wanted = inspect.signature(getattr(theirs, name)).parameters
        assert [*parameters] == [*wanted], name
        defaults = [(p.default, q.default) for p, q in zip(parameters.values(), wanted.values())]
        # A function of HTA's own stands for no function here.
        assert all(ours == other or callable(other) for ours, other in defaults), name


@pytest.mark.parametrize(
    "method, options",
    [
        ("get_temporal_breakdown", QUIET),
        ("get_comm_comp_overlap", QUIET),
        ("get_profiler_steps", {}),
        ("get_gpu_kernel_breakdown", QUIET),
        ("get_gpu_kernel_breakdown", {**QUIET, "num_kernels": 3, "include_memory_kernels": False}),
        ("get_gpu_user_annotation_breakdown", QUIET),
        ("get_gpu_user_annotation_breakdown", {**QUIET, "use_gpu_annotation": False}),
        ("get_cuda_kernel_launch_stats", QUIET),
        ("get_idle_time_breakdown", QUIET),
        ("get_idle_time_breakdown", {**QUIET, "ranks": [0, 1], "consecutive_kernel_delay": 100}),
        ("get_idle_time_breakdown", {**QUIET, "ranks": [1], "show_idle_interval_stats": True}),
        ("get_queue_length_summary", {"ranks": [0, 1]}),
        ("get_memory_bw_summary", {"ranks": [1]}),
        ("get_cuda_kernel_launch_stats", {**QUIET, "ranks": [1], "include_memory_events": False}),
        ("get_queue_length_time_series", {"ranks": [0, 1]}),
        ("get_memory_bw_time_series", {"ranks": [0, 1]}),
        ("get_aten_op_kernels_and_delay", {"ranks": [0]}),
    ],
)
def test_the_numbers_are_htas(both, method, options):
    expected, given = (getattr(analysis, method)(**options) for analysis in both)
    if expected is None:
        pytest.fail(f"HTA has no {method} of these traces")
    assert type(expected) is type(given)
    if isinstance(expected, dict):
        assert expected.keys() == given.keys()
        pairs = [(expected[key], given[key]) for key in expected]
    elif isinstance(expected, pandas.DataFrame):
        pairs = [(expected, given)]
    elif isinstance(expected, tuple):
        pairs = list(zip(expected, given))
    else:
        assert list(expected) == given
        return
    for one, other in pairs:
        if one is None:
            assert other is None
            continue
        assert list(one.columns) == list(other.columns)
        assert list(one.index.names) == list(other.index.names)
        columns = ("rank", "kernel_type", "name", "correlation", "aten_op_name", "kernel_sequence")
        columns += ("ts",)
        by = [c for c in columns if c in one.columns]
        one, other = (t.sort_values(by).reset_index(drop=True) for t in (one, other))
        pandas.testing.assert_frame_equal(
            one, other, check_dtype=False, check_exact=False, rtol=1e-9, atol=0.0051
        )


def test_summaries_of_series(both):
    expected, given = (analysis.get_queue_length_time_series([0, 1]) for analysis in both)
    summaries = [
        analysis.get_queue_length_summary_from_time_series(series)
        for analysis, series in zip(both, (expected, given))
    ]
    pandas.testing.assert_frame_equal(*summaries, check_dtype=False, check_index_type=False)
    for length in (2, 1024):
        blocked = [
            analysis.get_time_spent_blocked_on_full_queue(series, length)
            for analysis, series in zip(both, (expected, given))
        ]
        if len(blocked[0]) == 0:
            assert len(blocked[1]) == 0
            continue
        pandas.testing.assert_frame_equal(*blocked, check_dtype=False, rtol=1e-3)


def test_without_sequences_the_frame_is_empty(both):
    with pytest.warns(UserWarning, match="call graphs|aten::nothing"):
        frame = both[1].get_frequent_cuda_kernel_sequences("aten::nothing", "unused")
    assert len(frame) == 0


def test_traces_with_counters(traces, tmp_path):
    import gzip
    import json
    import shutil

    for file in traces.iterdir():
        shutil.copy(file, tmp_path)
    ours = hta.TraceAnalysis(trace_dir=str(tmp_path))
    ours.generate_trace_with_counters(ranks=[0])
    (written,) = tmp_path.glob("*rank0*_with_counters.json.gz")
    content = json.loads(gzip.open(written).read())
    before = json.loads(gzip.open(next(traces.glob("*rank0*"))).read())
    added = content["traceEvents"][len(before["traceEvents"]) :]
    assert {event["ph"] for event in added} == {"C"} and len(added) > 100
    kinds = hta.TimeSeriesTypes
    queues = [event for event in added if event["name"] == "Queue Length"]
    assert queues and len(queues) < len(added)
    assert ours._counters(0, kinds.QUEUE_LENGTH) == queues
    rest = [event for event in added if event["name"] != "Queue Length"]
    assert ours._counters(0, kinds.MEMCPY_BANDWIDTH) == rest


def test_a_graph_is_saved_and_restored(both, tmp_path):
    analysis = both[1]
    graph, _ = analysis.critical_path_analysis(1, "ProfilerStep", 0)
    edge = max(graph.edges, key=lambda edge: graph.edges[edge]["weight"])
    graph.edges[edge]["weight"] = 2
    assert graph.critical_path()
    path = graph.save(str(tmp_path / "saved" / "graph"))
    restored = hta.restore_cpgraph(path, analysis.t, 1)
    assert set(restored.edges) == set(graph.edges) and restored.edges[edge]["weight"] == 2
    assert restored.critical_path_nodes == graph.critical_path_nodes
    pandas.testing.assert_series_equal(restored.summary(), graph.summary())
    (tmp_path / "other.zip").write_bytes(b"PK")
    with pytest.raises(ValueError, match="other.zip"):
        hta.restore_cpgraph(str(tmp_path / "other.zip"), analysis.t, 1)


def test_kernels_with_their_annotations(tmp_path):
    import json

    def event(name, cat, ts, dur, **args):
        return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "pid": 0, "tid": 7, "args": args}

    place = {"device": 0, "stream": 7}
    events = [
        event("forward", "gpu_user_annotation", 5, 50, **place),
        event("void add<float>(int)", "kernel", 10, 20, correlation=1, **place),
        event("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 100, 20, correlation=2, **place),
    ]
    job = {"rank": 0, "world_size": 1, "backend": "nccl"}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": job}))
    analyses = [kind({0: "t.json"}, str(tmp_path)) for kind in (theirs, hta.TraceAnalysis)]
    for options in ({}, {"shortern_names": False}):
        expected, given = (a.get_gpu_kernels_with_user_annotations(0, **options) for a in analyses)
        columns = ["s_name", "s_cat", "s_user_annotation", "ts", "dur", "stream", "correlation", "end"]
        one, other = (t[columns].sort_values("ts", ignore_index=True) for t in (expected, given))
        pandas.testing.assert_frame_equal(one, other, check_dtype=False)
        assert list((expected["user_annotation"] == -1).sort_index()) == [*(given["user_annotation"] == -1)]
    bare = analyses[1].get_gpu_kernels_with_user_annotations(0, expand_names=False)
    assert not [name for name in bare.columns if name.startswith("s_")]


def places(graph, nodes):
    """Nodes by what they stand for: their numbers are HTA's own."""
    return [(graph.node_list[node].ev_idx, bool(graph.node_list[node].is_start)) for node in nodes]


def edges(graph):
    found = set()
    for edge in (edge for _, _, edge in graph.edges(data="object")):
        begin, end = places(graph, (edge.begin, edge.end))
        found.add((begin, end, edge.weight, edge.type.value))
    return found


def test_the_critical_path_is_htas(both, tmp_path):
    (expected, _), (given, found) = (
        analysis.critical_path_analysis(1, "ProfilerStep", 0) for analysis in both
    )
    assert found and edges(expected) == edges(given)
    path = places(expected, expected.critical_path_nodes)
    assert path == places(given, given.critical_path_nodes) and len(path) > 10
    assert expected.critical_path_events_set == given.critical_path_events_set
    pandas.testing.assert_series_equal(expected.summary(), given.summary())
    columns = ["event_idx", "duration", "type", "s_name", "tid", "stream", "bound_by"]
    frames = [
        graph.get_critical_path_breakdown()[columns].sort_values(columns, ignore_index=True)
        for graph in (expected, given)
    ]
    pandas.testing.assert_frame_equal(*frames, check_dtype=False)
    event = path[5][0]
    for one, other in zip(expected.get_nodes_for_event(event), given.get_nodes_for_event(event)):
        assert (one.ev_idx, one.is_start) == (other.ev_idx, other.is_start)
    # What if all that takes long took less.
    for graph in (expected, given):
        for u, v in list(graph.edges):
            if graph.edges[u, v]["weight"] > 20:
                graph.edges[u, v]["weight"] = 2
        assert graph.critical_path()
    path = places(expected, expected.critical_path_nodes)
    assert path == places(given, given.critical_path_nodes)


@pytest.mark.parametrize("only, all_edges", [(True, False), (False, True), (False, False)])
def test_the_critical_path_is_drawn_as_hta_does(both, tmp_path, only, all_edges):
    import collections
    import gzip
    import json

    drawn = []
    for number, analysis in enumerate(both):
        graph, _ = analysis.critical_path_analysis(0, "ProfilerStep", 0)
        path = analysis.overlay_critical_path_analysis(
            0, graph, str(tmp_path / str(number)), only, all_edges
        )
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
        # Arrows are numbered in the order of a set.
        plain = ({k: v for k, v in event.items() if k != "id"} for event in events)
        drawn.append(collections.Counter(json.dumps(event, sort_keys=True) for event in plain))
    assert drawn[0] == drawn[1] and sum(drawn[0].values()) > 100


def test_what_is_not_there_is_said(both):
    with pytest.warns(UserWarning):
        assert both[1].critical_path_analysis(0, "no such annotation", 0) is None
    with pytest.warns(UserWarning):
        assert both[1].get_cupti_counter_data_with_operators([0]) == []
    with pytest.raises(ky.Error, match="HTA"):
        both[1].get_potential_stragglers()
    with pytest.raises(AttributeError):
        both[1].nonsense
    with pytest.raises(ValueError, match="ranks of trace_files"):
        hta.TraceAnalysis({5: both[1].t.paths[0]})


def test_counters_of_kernels_are_htas(tmp_path):
    """A trace as CUPTI's mode leaves it: a measurement for each launch, with its counters."""
    import json

    def event(name, cat, ts, dur, tid=1, **args):
        return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}

    events = [event("ProfilerStep#1", "user_annotation", 0, 1000)]
    for number in range(3):
        ts = 100 * number + 10
        events += [
            event("aten::linear", "cpu_op", ts, 80, **{"External id": 10 * number + 1}),
            event("aten::addmm", "cpu_op", ts + 5, 60, **{"External id": 10 * number + 2}),
            event("cudaLaunchKernel", "cuda_runtime", ts + 10, 5, correlation=number + 1),
            event(
                "gemm", "cuda_profiler_range", ts + 20, 10, tid=7,
                **{"flops.sum": 5.0 * number, "bytes.sum": 7.0},
            ),
        ]
    path = tmp_path / "t.json"
    job = {"rank": 0, "world_size": 1, "backend": "nccl"}
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": job}))
    (given,) = hta.TraceAnalysis({0: "t.json"}, str(tmp_path)).get_cupti_counter_data_with_operators()
    assert list(given["flops.sum"]) == [0.0, 5.0, 10.0] and set(given["bytes.sum"]) == {7.0}
    assert list(given["op_stack"]) == [["aten::linear", "aten::addmm"]] * 3
    assert set(given["top_level_op"]) == {"aten::linear"}
    assert set(given["bottom_level_op"]) == {"aten::addmm"} and set(given["name"]) == {"gemm"}
