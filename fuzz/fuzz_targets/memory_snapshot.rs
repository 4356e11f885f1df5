//! Runs the target `memory_snapshot` with libFuzzer: it imports snapshots of PyTorch's memory.
#![no_main]
fuzz::libfuzzer!(fuzz::targets::imported::MEMORY_SNAPSHOT);
