//! Runs the target `targets::kineto::TARGET` with libFuzzer: it imports Chrome's JSON.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::kineto::TARGET);
