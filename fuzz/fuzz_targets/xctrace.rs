#![no_main]
fuzz::libfuzzer!(fuzz::targets::xctrace::TARGET);
