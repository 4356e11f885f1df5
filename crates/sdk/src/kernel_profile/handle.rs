//! Handles of profiles, for integrations that record to the process's profile or to another one.

use super::Profile;
use std::sync::Arc;

/// A handle of the profile to record to: that of the process ([`crate::kernel_profile::global()`]), or a shared one.
///
/// ```
/// use gapscope_sdk::kernel_profile::{self, Profile, ProfileHandle};
///
/// let of_the_process = ProfileHandle::from(kernel_profile::global());
/// let own = ProfileHandle::from(std::sync::Arc::new(Profile::new()));
/// own.record("step", 5); // it is a profile
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ProfileHandle {
    /// A profile that lives as long as the process.
    Static(&'static Profile),
    /// A shared profile.
    Shared(Arc<Profile>),
}

impl std::ops::Deref for ProfileHandle {
    type Target = Profile;

    fn deref(&self) -> &Profile {
        match self {
            ProfileHandle::Static(profile) => profile,
            ProfileHandle::Shared(profile) => profile,
        }
    }
}

impl From<&'static Profile> for ProfileHandle {
    fn from(profile: &'static Profile) -> ProfileHandle {
        ProfileHandle::Static(profile)
    }
}

impl From<Arc<Profile>> for ProfileHandle {
    fn from(profile: Arc<Profile>) -> ProfileHandle {
        ProfileHandle::Shared(profile)
    }
}
