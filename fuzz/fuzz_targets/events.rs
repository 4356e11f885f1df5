//! Runs the target `events` with libFuzzer: it assembles the events of a hook into a trace.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::events::TARGET);
