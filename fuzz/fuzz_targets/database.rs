//! Runs the target `targets::database::TARGET` with libFuzzer: it imports databases and documents of profilers.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::database::TARGET);
