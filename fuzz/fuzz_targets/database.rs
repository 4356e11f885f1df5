#![no_main]
fuzz::libfuzzer!(fuzz::targets::database::TARGET);
