//! The Perfetto `TracePacket` encoder.
