//! Asks Perfetto's own trace_processor about a trace.
