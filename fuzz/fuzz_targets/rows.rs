#![no_main]
fuzz::libfuzzer!(fuzz::targets::rows::TARGET);
