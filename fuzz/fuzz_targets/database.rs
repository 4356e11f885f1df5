//! Runs the target `database` with libFuzzer: it imports databases and documents of profilers.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::database::TARGET);
