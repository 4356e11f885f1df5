#![no_main]
fuzz::libfuzzer!(fuzz::targets::events::TARGET);
