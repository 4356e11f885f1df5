//! Runs the target `interpreter` with libFuzzer: it samples the stacks of a Python process with any memory.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::interpreter::TARGET);
