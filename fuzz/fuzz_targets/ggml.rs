//! Runs the target `ggml` with libFuzzer: it imports logs of ggml's Vulkan backend.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::GGML);
