//! Kymograph.
