//! Chooses how the work of a device is timed: of several ways, from single dispatches to command buffers, the finest
//! that the program wants and the device can.

use crate::kernel_profile::{Profile, Sampling};

/// The points at which a device can sample its counters.
///
/// ```
/// # use gapscope_sdk::metal::Points;
/// let apple_gpu = Points { timestamps: true, stage: true, ..Points::default() };
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Points {
    /// The device has the counter set `timestamp`.
    pub timestamps: bool,
    /// The device samples around each dispatch (`MTLCounterSamplingPointAtDispatchBoundary`), as Apple's own GPUs do
    /// not.
    pub dispatch: bool,
    /// The device samples around each pass (`MTLCounterSamplingPointAtStageBoundary`).
    pub stage: bool,
    #[doc(hidden)]
    pub more_fields_may_come: (),
}

/// The work that the program wants to have timed.
///
/// ```
/// # use gapscope_sdk::metal::Wanted;
/// assert_eq!(Wanted::default(), Wanted::CommandBuffers);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// Command buffers, which costs nothing.
    #[default]
    CommandBuffers,
    /// Passes.
    Passes,
    /// Dispatches. If only passes can be timed, each dispatch gets a pass of its own, which costs time between them.
    Dispatches,
}

impl Wanted {
    /// Returns what the environment asks for; see [`crate::kernel_profile::is_dispatch_enabled`].
    ///
    /// ```
    /// # use gapscope_sdk::metal::Wanted;
    /// // Without GAPSCOPE_PROFILE_DISPATCH and MLX_PROFILE_DISPATCH:
    /// assert_eq!(Wanted::from_env(), Wanted::CommandBuffers);
    /// ```
    pub fn from_env() -> Wanted {
        match crate::kernel_profile::is_dispatch_enabled() {
            true => Wanted::Dispatches,
            false => Wanted::CommandBuffers,
        }
    }
}

/// The way in which a device's work is timed, which [`Ladder::choose`] chooses.
///
/// ```
/// use gapscope_sdk::metal::{Ladder, Points, Wanted};
///
/// let chosen = Ladder::choose(Wanted::Passes, Points::default());
/// assert!(matches!(chosen, Ladder::CommandBuffers { because: Some(_) }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ladder {
    /// Samples around each dispatch, with a barrier.
    DispatchBoundary,
    /// A pass for each dispatch, with samples at the ends of the pass.
    PassPerDispatch,
    /// Samples at the ends of the program's own passes.
    Passes,
    /// Times of command buffers only.
    CommandBuffers {
        /// The reason why nothing finer is timed; `None` if nothing finer was wanted.
        because: Option<&'static str>,
    },
}

impl Ladder {
    /// Returns the finest way that is wanted and possible. Sampling at an unsupported point ends the process, so that
    /// the choice follows the device's description and nothing is tried.
    ///
    /// ```
    /// use gapscope_sdk::metal::{Ladder, Points, Wanted};
    ///
    /// let apple_gpu = Points { timestamps: true, stage: true, ..Points::default() };
    /// assert_eq!(Ladder::choose(Wanted::Dispatches, apple_gpu), Ladder::PassPerDispatch);
    /// ```
    pub fn choose(wanted: Wanted, points: Points) -> Ladder {
        let none = |reason| Ladder::CommandBuffers {
            because: Some(reason),
        };
        match (wanted, points) {
            (Wanted::CommandBuffers, _) => Ladder::CommandBuffers { because: None },
            (
                _,
                Points {
                    timestamps: false, ..
                },
            ) => none("the device has no timestamp counters"),
            (Wanted::Dispatches, Points { dispatch: true, .. }) => Ladder::DispatchBoundary,
            (Wanted::Dispatches, Points { stage: true, .. }) => Ladder::PassPerDispatch,
            (Wanted::Passes, Points { stage: true, .. }) => Ladder::Passes,
            (_, _) => none("the device cannot sample counters at the boundaries that are wanted"),
        }
    }

    /// Returns true if counters are sampled.
    ///
    /// ```
    /// # use gapscope_sdk::metal::Ladder;
    /// assert!(Ladder::Passes.samples() && !Ladder::CommandBuffers { because: None }.samples());
    /// ```
    pub fn samples(self) -> bool {
        !matches!(self, Ladder::CommandBuffers { .. })
    }

    /// Notes the source of the times in a profile, once for each device.
    ///
    /// ```
    /// use gapscope_sdk::{kernel_profile::{Profile, Sampling}, metal::Ladder};
    ///
    /// let profile = Profile::new();
    /// Ladder::Passes.say(&profile);
    /// assert_eq!(profile.snapshot().sampling, Sampling::Pass);
    /// ```
    pub fn say(self, profile: &Profile) {
        profile.set_sampling(self.sampling());
        if let Some(note) = self.note() {
            profile.note(note);
        }
    }

    /// Returns the sampling mode of results.
    ///
    /// ```
    /// use gapscope_sdk::{kernel_profile::Sampling, metal::Ladder};
    ///
    /// // Each sample waits for the work before it.
    /// assert_eq!(Ladder::DispatchBoundary.sampling(), Sampling::DispatchSerialised);
    /// ```
    pub fn sampling(self) -> Sampling {
        match self {
            Ladder::DispatchBoundary => Sampling::DispatchSerialised,
            Ladder::PassPerDispatch => Sampling::Dispatch,
            Ladder::Passes => Sampling::Pass,
            Ladder::CommandBuffers { .. } => Sampling::CommandBuffer,
        }
    }

    /// Returns the note that every result should show.
    ///
    /// ```
    /// # use gapscope_sdk::metal::Ladder;
    /// let refused = Ladder::CommandBuffers { because: Some("the device has no timestamp counters") };
    /// assert!(refused.note().unwrap().contains("no timestamp counters"));
    /// ```
    pub fn note(self) -> Option<String> {
        match self {
            Ladder::DispatchBoundary => None,
            Ladder::PassPerDispatch => Some(
                "Each dispatch ran in a pass of its own, as this GPU samples its clock only between passes: dispatches do not overlap as they would, and gaps between them are longer.".to_owned(),
            ),
            Ladder::Passes => None,
            Ladder::CommandBuffers { because } => {
                because.map(|because| format!("Only command buffers have times: {because}."))
            }
        }
    }
}
