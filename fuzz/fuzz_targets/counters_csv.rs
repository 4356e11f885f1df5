#![no_main]
fuzz::libfuzzer!(fuzz::targets::counters_csv::TARGET);
