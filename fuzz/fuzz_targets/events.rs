//! Runs the target `events` with libFuzzer: it makes a trace of events of a hook (our library in a program).
#![no_main]
fuzz::libfuzzer!(fuzz::targets::events::TARGET);
