//! Runs the target `kineto` with libFuzzer: it imports Chrome's JSON.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::kineto::TARGET);
