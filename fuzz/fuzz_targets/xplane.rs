#![no_main]
fuzz::libfuzzer!(fuzz::targets::xplane::TARGET);
