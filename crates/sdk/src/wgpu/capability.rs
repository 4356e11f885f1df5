//! What a device can time.

use crate::kernel_profile::Sampling;
use ::wgpu::Features;

/// What can be timed on a device, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Each dispatch.
    Dispatches,
    /// Each pass, at its boundaries.
    Passes,
    /// Each command buffer. Only when the program wants no more: [`super::Profiler::at_most`].
    CommandBuffers,
    /// Nothing.
    Nothing,
}

impl Capability {
    /// What these features allow.
    ///
    /// ```
    /// use gapscope_sdk::wgpu::Capability;
    /// use wgpu::Features;
    ///
    /// assert_eq!(Capability::of(Features::TIMESTAMP_QUERY), Capability::Passes);
    /// assert_eq!(Capability::of(Features::empty()), Capability::Nothing);
    /// ```
    pub fn of(features: Features) -> Capability {
        if !features.contains(Features::TIMESTAMP_QUERY) {
            Capability::Nothing
        } else if features.contains(Features::TIMESTAMP_QUERY_INSIDE_PASSES) {
            Capability::Dispatches
        } else {
            Capability::Passes
        }
    }

    pub(super) fn sampling(self) -> Sampling {
        match self {
            Capability::Dispatches => Sampling::Dispatch,
            Capability::Passes => Sampling::Pass,
            Capability::CommandBuffers => Sampling::CommandBuffer,
            Capability::Nothing => Sampling::None,
        }
    }

    /// What is said of it in every result.
    pub(super) fn sentence(self, encoders: bool) -> &'static str {
        match (self, encoders) {
            (Capability::Dispatches, true) => {
                "wgpu timed each dispatch and each command buffer by timestamps inside passes and encoders."
            }
            (Capability::Dispatches, false) => {
                "wgpu timed each dispatch by timestamps inside passes; a command buffer's time is from its first dispatch to its last, because the device was made without TIMESTAMP_QUERY_INSIDE_ENCODERS."
            }
            (Capability::Passes, true) => {
                "wgpu timed passes at their boundaries: the device was made without TIMESTAMP_QUERY_INSIDE_PASSES, or has not got it."
            }
            (Capability::Passes, false) => {
                "wgpu timed passes at their boundaries: the device was made without TIMESTAMP_QUERY_INSIDE_PASSES, or has not got it. A command buffer's time is from its first pass to its last."
            }
            (Capability::CommandBuffers, _) => {
                "wgpu timed command buffers only, as the program asked."
            }
            (Capability::Nothing, _) => {
                "wgpu timed nothing: the device was made without TIMESTAMP_QUERY, or has not got it."
            }
        }
    }
}
