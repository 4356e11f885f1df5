#![no_main]
fuzz::libfuzzer!(fuzz::targets::perfetto::TARGET);
