#![no_main]
fuzz::libfuzzer!(fuzz::targets::manifest::TARGET);
