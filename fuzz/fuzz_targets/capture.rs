#![no_main]
fuzz::libfuzzer!(fuzz::targets::capture::TARGET);
