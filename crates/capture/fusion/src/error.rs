//! Defines [`FuseError`], the reasons why fusion has no result.

use crate::draft::DraftError;

/// Why fusion has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FuseError {
    /// The capture cannot be run.
    #[error(transparent)]
    Replay(#[from] gapscope_replay::Error),
    /// The bandwidth of the device cannot be measured.
    #[error(transparent)]
    Bandwidth(#[from] gapscope_device_peaks::Error),
    /// A changed capture cannot be made.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The folder for changed captures cannot be made.
    #[error("cannot make a folder for changed captures: {0}")]
    Io(#[from] std::io::Error),
}
