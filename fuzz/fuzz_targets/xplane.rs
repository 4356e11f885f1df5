//! Runs the target `xplane` with libFuzzer: it imports profiles of JAX.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::XPLANE);
