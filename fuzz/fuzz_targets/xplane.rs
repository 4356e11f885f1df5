//! Runs the target `targets::imported::XPLANE` with libFuzzer: it imports profiles of JAX.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::XPLANE);
