//! Defines a command buffer that is ready to be submitted, as those who record it hand it to those who submit it.

use crate::truth::Tally;
use ash::vk;

/// A finished command buffer with the work of one execution.
#[derive(Clone, Copy)]
pub struct Recorded {
    pub buffer: vk::CommandBuffer,
    pub tally: Tally,
}
