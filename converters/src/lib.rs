//! Reads finished traces. Never linked into a traced process by itself.
#![forbid(unsafe_code)]

pub mod json;
