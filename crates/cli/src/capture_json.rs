//! What `gapscope capture --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// What `gapscope capture --json` prints on stderr of each capture, on a line of its own.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Captured {
    /// The folder of the capture.
    pub capture: PathBuf,
    /// The window, as its options would ask for it.
    pub window: String,
    /// Submissions in it.
    pub submission_count: usize,
    /// Dispatches in it.
    pub dispatch_count: usize,
    /// Size of its files, bytes.
    pub bytes: u64,
    /// How it ended.
    pub end: End,
    /// What was refused or failed.
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
    /// All that was asked for is in it.
    Complete,
    /// The program ended first.
    ProgramEnded,
    /// What came next cannot be captured right.
    Refused,
    /// Capturing failed.
    Failed,
    /// It has no end: its writer was killed.
    CutOff,
}
