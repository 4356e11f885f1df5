//! Tests that transfers move bytes, and that memory which is not coherent shows stale ones.

use std::cell::Cell;

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

#[test]
fn transfers_move_bytes() {
    let scenario = || {
        let gpu = Gpu::new();
        let (from, to) = (gpu.buffer(64), gpu.buffer(64));
        gpu.execute(2, |buffer| unsafe {
            gpu.device
                .cmd_fill_buffer(buffer, from.buffer, 0, vk::WHOLE_SIZE, 7);
            gpu.device
                .cmd_update_buffer(buffer, from.buffer, 8, &9u32.to_ne_bytes());
            let region = vk::BufferCopy {
                src_offset: 4,
                dst_offset: 0,
                size: 12,
            };
            gpu.device
                .cmd_copy_buffer(buffer, from.buffer, to.buffer, &[region]);
        });
        let words: Vec<_> = gpu.map(&to)[..4].iter().map(Cell::get).collect();
        assert_eq!(words, [7, 9, 7, 0]);
        gpu.destroy_buffer(from);
        gpu.destroy_buffer(to);
        gpu.destroy();
    };
    let variables = [("FAKE_VK_BYTES_PER_US", "1")];
    child::run(&variables, scenario, |outcome| {
        outcome.assert_clean();
        let (start_ns, end_ns) = outcome.of_kind("fill")[0].times();
        assert_eq!(end_ns - start_ns, 64_000);
        assert_eq!(outcome.of_kind("copy")[0].number("bytes"), 12);
    });
}

#[test]
fn memory_that_is_not_coherent_shows_stale_bytes() {
    let scenario = || {
        let gpu = Gpu::new();
        let (from, to) = (gpu.buffer(256), gpu.buffer(256));
        let (source, seen) = (gpu.map(&from), gpu.map(&to));
        let range = |memory| {
            [vk::MappedMemoryRange::default()
                .memory(memory)
                .size(vk::WHOLE_SIZE)]
        };
        let copy = || {
            gpu.execute(0, |buffer| unsafe {
                let region = vk::BufferCopy {
                    src_offset: 0,
                    dst_offset: 0,
                    size: 256,
                };
                gpu.device
                    .cmd_copy_buffer(buffer, from.buffer, to.buffer, &[region]);
            });
        };
        let invalidate = || unsafe {
            gpu.device
                .invalidate_mapped_memory_ranges(&range(to.memory))
                .expect("invalidated");
        };
        source[0].set(5);
        copy();
        invalidate();
        assert_eq!(seen[0].get(), 0, "the write was not flushed");
        unsafe {
            gpu.device
                .flush_mapped_memory_ranges(&range(from.memory))
                .expect("flushed")
        };
        copy();
        assert_eq!(seen[0].get(), 0, "the range was not invalidated");
        invalidate();
        assert_eq!(seen[0].get(), 5);
        gpu.destroy_buffer(from);
        gpu.destroy_buffer(to);
        gpu.destroy();
    };
    let variables = [("FAKE_VK_COHERENT", "0")];
    child::run(&variables, scenario, |outcome| outcome.assert_clean());
}
