//! Runs the target `rows` with libFuzzer: it analyses, shows and exports a trace with any rows.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::rows::TARGET);
