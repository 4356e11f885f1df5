//! Runs the target `xctrace` with libFuzzer: it imports exports of Instruments (xctrace).
#![no_main]
fuzz::libfuzzer!(fuzz::targets::xctrace::TARGET);
