//! Capture and kernel profiling from inside a Rust program.
