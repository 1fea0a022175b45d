//! Perfetto's trace files.
