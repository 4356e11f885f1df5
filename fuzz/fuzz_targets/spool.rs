//! Runs the target `spool` with libFuzzer: it reads the spool, the files that a hook writes during a recording.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::spool::TARGET);
