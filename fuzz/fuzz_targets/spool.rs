#![no_main]
fuzz::libfuzzer!(fuzz::targets::spool::TARGET);
