//! What `gapscope replay --json` prints.

use gapscope_fusion::Fusion;
use gapscope_replay::{Dumped, Replay, Search, Unfit};
use schemars::JsonSchema;
use serde::Serialize;

/// What `gapscope replay --json` prints: of a capture that ran, or of one that cannot run here.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ReplayAnswer")]
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Answer {
    /// It ran.
    Ran(Ran),
    /// It cannot run.
    Unfit(CannotRun),
}

/// A capture that ran. Times are integer nanoseconds, sizes integer bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ran {
    #[serde(flatten)]
    pub result: Replay,
    /// All outputs that were compared have the bytes that the program had.
    pub equal: bool,
}

/// A capture that cannot run on the device: nothing ran.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CannotRun {
    /// 0: none ran.
    pub dispatch_count: u64,
    /// 0: none was compared.
    pub outputs_compared: u64,
    /// 0: none was compared.
    pub outputs_equal: u64,
    /// null: it is not known.
    pub equal: Option<bool>,
    /// What is missing.
    pub missing: Vec<Unfit>,
}

/// What `gapscope replay --find-nan --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindNan {
    #[serde(flatten)]
    pub search: Search,
    /// What readers must know.
    pub notes: Vec<String>,
}

/// What `gapscope replay --fuse --json` prints. Times are nanoseconds, sizes bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fused {
    /// What was found, and what merging it changes.
    pub fusion: Fusion,
}

/// What `gapscope replay --dump --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DumpedBuffer {
    /// What was written.
    pub dumped: Dumped,
    /// What readers must know.
    pub notes: Vec<String>,
}
