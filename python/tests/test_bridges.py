"""Log records and spans of other libraries are in the trace."""

import logging
import threading
import types

import judge
import pytest

import kymograph as ky


pytestmark = pytest.mark.heavy


def test_log_records_are_moments(tmp_path):
    logger = logging.getLogger("kymograph.tests")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    handler = ky.logging_handler(logging.INFO)
    logger.addHandler(handler)

    class Unformattable:
        def __str__(self):
            raise AssertionError("nothing is recorded")

    try:
        logger.info("%s", Unformattable())
        with ky.record(tmp_path / "t.pftrace"):
            logger.debug("too low")
            logger.info("it is %d", 7)
            try:
                raise KeyError("x")
            except KeyError:
                logger.exception("failed")
    finally:
        logger.removeHandler(handler)
    trace = judge.Trace(tmp_path / "t.pftrace")
    assert trace.column("SELECT name FROM slice ORDER BY ts") == ["it is 7", "failed"]
    args = trace.args("failed")
    assert args["level"] == "ERROR" and args["exception"] == "KeyError"
    assert args["logger"] == "kymograph.tests" and args["file"].endswith("test_bridges.py")


class Span:
    """What a processor sees of OpenTelemetry's spans."""

    def __init__(self, name, number, parent=None, attributes=None, status="UNSET"):
        self.name, self.attributes = name, attributes
        self.context = types.SimpleNamespace(trace_id=1, span_id=number)
        self.parent = None if parent is None else parent.context
        self.status = types.SimpleNamespace(status_code=types.SimpleNamespace(name=status))

    def get_span_context(self):
        return self.context


def test_spans_are_ranges(tmp_path):
    processor = ky.otel_span_processor()
    unrecorded = Span("before", 9)
    processor.on_start(unrecorded)
    with ky.record(tmp_path / "t.pftrace"):
        processor.on_end(unrecorded)
        outer = Span("GET /", 2, attributes={"http.status": 500}, status="ERROR")
        inner = Span("query", 3, parent=outer)
        processor.on_start(outer, parent_context=None)
        processor.on_start(inner)
        processor.on_end(inner)
        thread = threading.Thread(target=processor.on_end, args=(outer,))
        thread.start()
        thread.join()
        processor.on_start(object())
        processor.on_end(object())
        assert processor.force_flush()
    processor.shutdown()
    trace = judge.Trace(tmp_path / "t.pftrace")
    assert trace.column("SELECT name FROM slice ORDER BY ts") == ["GET /", "query"]
    args = trace.args("GET /")
    assert args["http_status"] == "500" and args["status"] == "ERROR"
    assert trace.args("query")["parent_id"] == f"{2:016x}" and args["trace_id"] == f"{1:032x}"


def test_spans_of_opentelemetrys_sdk(tmp_path):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry import context, trace as api

    processor = ky.otel_span_processor()
    assert isinstance(processor, sdk.SpanProcessor)
    provider = sdk.TracerProvider()
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("before"):
        pass
    with ky.record(tmp_path / "t.pftrace"):
        with tracer.start_as_current_span("request", attributes={"route": "/"}) as outer:
            with pytest.raises(KeyError):
                with tracer.start_as_current_span("inner") as inner:
                    inner.set_attribute("rows", 3)
                    raise KeyError("x")
            here = context.get_current()

            def elsewhere():
                token = context.attach(here)
                with tracer.start_as_current_span("on a thread"):
                    pass
                context.detach(token)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        assert provider.force_flush()
    with tracer.start_as_current_span("after"):
        pass
    provider.shutdown()
    seen = judge.Trace(tmp_path / "t.pftrace")
    assert sorted(seen.column("SELECT name FROM slice")) == ["inner", "on a thread", "request"]
    assert seen.args("request")["route"] == "/"
    inner = seen.args("inner")
    assert inner["rows"] == "3" and inner["status"] == "ERROR"
    own = api.format_span_id(outer.get_span_context().span_id)
    assert inner["parent_id"] == own == seen.args("on a thread")["parent_id"]
    assert seen.args("request")["span_id"] == own
