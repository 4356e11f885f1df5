//! The timing capabilities of devices: what can be timed with the features that a device was created with.

use crate::kernel_profile::Sampling;
use ::wgpu::Features;

/// The work that can be timed on a device, from most to least.
///
/// ```
/// use gapscope_sdk::wgpu::Capability;
///
/// assert!(Capability::Dispatches < Capability::Nothing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Each dispatch.
    Dispatches,
    /// Each pass, at its boundaries.
    Passes,
    /// Each command buffer, only if the program wants no more: [`super::Profiler::at_most`].
    CommandBuffers,
    /// Nothing.
    Nothing,
}

impl Capability {
    /// Returns the capability that these features allow.
    ///
    /// ```
    /// use gapscope_sdk::wgpu::Capability;
    /// use wgpu::Features;
    ///
    /// assert_eq!(Capability::from_features(Features::TIMESTAMP_QUERY), Capability::Passes);
    /// assert_eq!(Capability::from_features(Features::empty()), Capability::Nothing);
    /// ```
    pub fn from_features(features: Features) -> Capability {
        if !features.contains(Features::TIMESTAMP_QUERY) {
            Capability::Nothing
        } else if features.contains(Features::TIMESTAMP_QUERY_INSIDE_PASSES) {
            Capability::Dispatches
        } else {
            Capability::Passes
        }
    }

    /// Returns the sampling mode of results.
    pub(super) fn sampling(self) -> Sampling {
        match self {
            Capability::Dispatches => Sampling::Dispatch,
            Capability::Passes => Sampling::Pass,
            Capability::CommandBuffers => Sampling::CommandBuffer,
            Capability::Nothing => Sampling::None,
        }
    }

    /// Returns the finest capability that these features allow and the program wants. The time of a command buffer
    /// without timestamps between passes is that of its passes.
    pub(super) fn choose(features: Features, most: Capability) -> Capability {
        let encoders = Features::TIMESTAMP_QUERY | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        match most.max(Capability::from_features(features)) {
            Capability::CommandBuffers if !features.contains(encoders) => Capability::Passes,
            capability => capability,
        }
    }

    /// Returns the sentence that every result shows. `encoders` means that timestamps are also written between
    /// passes, and `most` is what the program wants.
    pub(super) fn sentence(self, encoders: bool, most: Capability) -> &'static str {
        match (self, encoders) {
            (Capability::Nothing, _) if most == Capability::Nothing => {
                "wgpu timed nothing, as the program wanted."
            }
            (Capability::Dispatches, true) => {
                "wgpu timed each dispatch and each command buffer by timestamps inside passes and encoders; a pass is from its first dispatch to its last."
            }
            (Capability::Dispatches, false) => {
                "wgpu timed each dispatch by timestamps inside passes; a pass and a command buffer are from their first dispatch to their last, because the device was made without TIMESTAMP_QUERY_INSIDE_ENCODERS."
            }
            (Capability::Passes, true) => {
                "wgpu timed passes at their boundaries and each command buffer: single dispatches have times only where their pass has no other, because the device was made without TIMESTAMP_QUERY_INSIDE_PASSES, or does not have it, or because the program wanted no more."
            }
            (Capability::Passes, false) => {
                "wgpu timed passes at their boundaries, and a command buffer from its first pass to its last: the device was made without TIMESTAMP_QUERY_INSIDE_PASSES and TIMESTAMP_QUERY_INSIDE_ENCODERS, or does not have them."
            }
            (Capability::CommandBuffers, _) => {
                "wgpu timed command buffers only, as the program wanted."
            }
            (Capability::Nothing, _) => {
                "wgpu timed nothing: the device was made without TIMESTAMP_QUERY, or does not have it."
            }
        }
    }
}
