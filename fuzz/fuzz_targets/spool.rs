//! Runs the target `targets::spool::TARGET` with libFuzzer: it reads the spool, the files that a hook writes while its program is recorded.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::spool::TARGET);
