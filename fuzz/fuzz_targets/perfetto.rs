#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::PERFETTO);
