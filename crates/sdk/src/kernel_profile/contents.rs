//! The content of a profile at one moment, from which snapshots and traces are made.

use super::info::ProfileInfo;
use super::shard::Shard;

/// The merged content of a profile.
pub(super) struct ProfileContents {
    /// What the profile is of, such as its device.
    pub info: ProfileInfo,
    /// The rows and sums of all shards (parts by thread) together.
    pub merged: Shard,
}
