//! Runs the target `counters_csv` with libFuzzer: it imports tables of Xcode's counters.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::COUNTERS_CSV);
