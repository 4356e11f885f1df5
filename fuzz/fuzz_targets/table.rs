//! Runs the target `table` with libFuzzer: it reads the file of one table in a trace that is whole otherwise.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::table::TARGET);
