"""`kymograph.compat.hta` has HTA's methods, parameters and numbers."""

import inspect

import pytest

pandas = pytest.importorskip("pandas")
theirs = pytest.importorskip("hta.trace_analysis").TraceAnalysis

from kymograph.compat import hta  # noqa: E402

QUIET = {"visualize": False}


@pytest.fixture(scope="module")
def both(traces):
    files = {rank: next(traces.glob(f"*rank{rank}*")).name for rank in (0, 1)}
    folder = str(traces)
    return theirs(files, folder), hta.TraceAnalysis(files, folder)


def public(kind):
    return {n: f for n, f in inspect.getmembers(kind, inspect.isfunction) if n[0] != "_"}


def test_every_method_is_here_or_said_to_be_missing():
    ours = public(hta.TraceAnalysis)
    assert set(public(theirs)) == set(ours) | set(hta._ELSEWHERE)
    for name, method in ours.items():
        parameters = inspect.signature(method).parameters
        wanted = inspect.signature(getattr(theirs, name)).parameters
        assert [*parameters] == [*wanted], name
        assert [p.default for p in parameters.values()] == [p.default for p in wanted.values()]


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
        by = [c for c in ("rank", "kernel_type", "name", "correlation") if c in one.columns]
        one, other = (t.sort_values(by).reset_index(drop=True) for t in (one, other))
        pandas.testing.assert_frame_equal(
            one, other, check_dtype=False, check_exact=False, rtol=1e-9, atol=0.0051
        )


def test_what_is_missing_says_what_there_is(both):
    with pytest.raises(NotImplementedError, match="counters"):
        both[1].generate_trace_with_counters()
    with pytest.raises(AttributeError):
        both[1].nonsense
    with pytest.raises(ValueError, match="ranks of trace_files"):
        hta.TraceAnalysis({5: both[1].t.paths[0]})
