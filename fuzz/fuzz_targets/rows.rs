//! Runs the target `targets::rows::TARGET` with libFuzzer: it analyses, shows and exports a trace with any rows.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::rows::TARGET);
