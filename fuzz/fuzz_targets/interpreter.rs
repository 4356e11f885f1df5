#![no_main]
fuzz::libfuzzer!(fuzz::targets::interpreter::TARGET);
