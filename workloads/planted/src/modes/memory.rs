//! Makes allocations of known sizes.

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::setup::Setup;
use crate::truth::Truth;

/// Allocates `count` blocks of `bytes` in each iteration, frees them, and then allocates and frees a block of half
/// the size, with work between. The peak is that of the blocks and of the buffer that all modes have.
pub fn memory(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let gpu = &setup.gpu;
    let wanted = [
        vk::MemoryPropertyFlags::DEVICE_LOCAL,
        vk::MemoryPropertyFlags::empty(),
    ];
    for _ in 0..args.iterations {
        let blocks = (0..args.count)
            .map(|_| Ok(gpu.allocate(args.bytes, u32::MAX, &wanted)?.0))
            .collect::<Result<Vec<_>>>()?;
        setup.run_dispatches(args.n)?;
        for block in blocks {
            gpu.free(block, args.bytes);
        }
        let (block, _) = gpu.allocate(args.bytes / 2, u32::MAX, &wanted)?;
        setup.run_dispatches(args.n)?;
        gpu.free(block, args.bytes / 2);
    }
    setup.report(truth)
}
