#![no_main]
fuzz::libfuzzer!(fuzz::targets::kineto::TARGET);
