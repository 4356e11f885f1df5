//! Runs the target `capture` with libFuzzer: it reads a capture, the recorded commands and memory of a program.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::capture::TARGET);
