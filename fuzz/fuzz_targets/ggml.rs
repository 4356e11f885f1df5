#![no_main]
fuzz::libfuzzer!(fuzz::targets::ggml::TARGET);
