//! Runs the target `targets::imported::GGML` with libFuzzer: it imports logs of ggml's Vulkan backend.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::GGML);
