//! Runs the target `perfetto` with libFuzzer: it imports Perfetto's traces.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::PERFETTO);
