"""Other libraries' events in the trace: `logging`, OpenTelemetry."""

from __future__ import annotations

import logging

from . import _kymograph

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LoggingHandler(logging.Handler):
    """Log records become moments on their threads, with the level, the logger and the place. An
    exception's type is an argument, too. Nothing is formatted while nothing is recorded."""

    def __init__(self, level: int = logging.NOTSET, category: str = "logging") -> None:
        super().__init__(level)
        self.category = category

    def emit(self, record: logging.LogRecord) -> None:
        """Records one. An error of its format is handled as other handlers do."""
        if not _kymograph.is_enabled(self.category):
            return
        try:
            args: dict[str, Any] = {
                "level": record.levelname,
                "logger": record.name,
                "file": record.pathname,
                "line": record.lineno,
            }
            if record.exc_info and record.exc_info[0] is not None:
                args["exception"] = record.exc_info[0].__name__
            text = self.format(record) if self.formatter is not None else record.getMessage()
            _kymograph.instant(text, category=self.category, **args)
        except Exception:
            self.handleError(record)


class _SpanProcessor:
    """OpenTelemetry's spans become ranges, from their start to their end, which may be on another
    thread. Attributes that a span has at its end are arguments, as are its ids and its status.
    """

    def __init__(self, category: str = "opentelemetry") -> None:
        self.category = category
        self._open: dict[tuple[int, int], int] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """A span begins."""
        try:
            if not _kymograph.is_enabled(self.category):
                return
            context = span.get_span_context()
            args = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            parent = getattr(span, "parent", None)
            if parent is not None:
                args["parent_id"] = f"{parent.span_id:016x}"
            range = _kymograph.range_begin(span.name, self.category, args)
            if range:
                self._open[context.trace_id, context.span_id] = range
        except Exception:
            # The program's spans are not to fail for being recorded.
            pass

    def on_end(self, span: Any) -> None:
        """A span ends."""
        try:
            context = span.get_span_context()
            range = self._open.pop((context.trace_id, context.span_id), 0)
            if range:
                args = {str(key): value for key, value in (span.attributes or {}).items()}
                status = getattr(getattr(span, "status", None), "status_code", None)
                if getattr(status, "name", "UNSET") != "UNSET":
                    args["status"] = status.name  # type: ignore[union-attr]
                _kymograph.range_end(range, args)
        except Exception:
            pass

    def _on_ending(self, span: Any) -> None:
        pass

    def shutdown(self) -> None:
        """No span begins or ends any more; what is open stays so until the recording ends."""
        self._open.clear()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Writes what was recorded so far; whether that is done."""
        return not _kymograph.is_recording() or _kymograph.flush(timeout_millis)


def span_processor(category: str) -> Any:
    """One that OpenTelemetry's SDK takes, if it is here; the same without its base if not."""
    try:
        from opentelemetry.sdk.trace import SpanProcessor
    except ImportError:
        return _SpanProcessor(category)

    # Made here, so that checkers of types need not have the SDK.
    bases: tuple[Any, ...] = (_SpanProcessor, SpanProcessor)
    made = type("KymographSpanProcessor", bases, {"__doc__": _SpanProcessor.__doc__})
    return made(category)
