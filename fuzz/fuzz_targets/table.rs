#![no_main]
fuzz::libfuzzer!(fuzz::targets::table::TARGET);
