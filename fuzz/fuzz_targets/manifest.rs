//! Runs the target `manifest` with libFuzzer: it reads the manifest of a trace that is whole otherwise.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::manifest::TARGET);
