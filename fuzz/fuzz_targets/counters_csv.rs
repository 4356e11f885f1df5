#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::COUNTERS_CSV);
