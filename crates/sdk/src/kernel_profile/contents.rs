//! The content of a profile at one moment, from which snapshots and traces are made.

use super::info::ProfileInfo;
use super::shard::Shard;

/// The merged content of a profile.
pub(super) struct ProfileContents {
    pub info: ProfileInfo,
    pub merged: Shard,
}
