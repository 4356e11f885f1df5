//! The JSON that `gapscope capture --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// A capture, as `gapscope capture --json` prints it on stderr on a line of its own.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Captured {
    /// The folder of the capture.
    pub capture: PathBuf,
    /// The window, in the form of its option.
    pub window: String,
    /// The number of submissions in the capture.
    pub submission_count: usize,
    /// The number of dispatches in the capture.
    pub dispatch_count: usize,
    /// The size of the capture's files in bytes.
    pub bytes: u64,
    /// How the window ended.
    pub end: End,
    /// What was refused or has failed.
    pub end_detail: Option<String>,
}

/// How a window ended.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    not(target_os = "linux"),
    expect(
        dead_code,
        reason = "its schema is printed where nothing is captured too"
    )
)]
pub enum End {
    /// The window is complete.
    Complete,
    /// The program ended before the window.
    ProgramEnded,
    /// The next command cannot be captured correctly.
    Refused,
    /// Capturing failed.
    Failed,
    /// The capture has no end because its writer was killed.
    CutOff,
}
