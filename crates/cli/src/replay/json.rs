//! The JSON that `gapscope replay --json` prints.

use gapscope_cuda_replay::shrink::Shrunk;
use gapscope_cuda_replay::{Bench, Comparison, Exported, Unsteady};
use gapscope_fusion::Fusion;
use gapscope_replay::{Dumped, Replay, Search, Unfit};
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `gapscope replay --json`, for a capture that ran or one that cannot run here.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ReplayAnswer")]
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Answer {
    /// The capture ran.
    Ran(Ran),
    /// The capture cannot run.
    Unfit(CannotRun),
}

/// A capture that ran. Times are integer nanoseconds, sizes integer bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ran {
    #[serde(flatten)]
    pub result: Replay,
    /// Whether all outputs that were compared have the bytes that the program had.
    pub equal: bool,
    /// For captures of CUDA: how launches differ between their own runs, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<Unsteady>,
    /// With `--bench` or `--with`: the time of the launch alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bench: Option<Bench>,
    /// With `--with`: the other kernel's time and outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Comparison>,
}

/// A capture that cannot run on the device. Nothing ran.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CannotRun {
    /// Always 0: none ran.
    pub dispatch_count: u64,
    /// Always 0: none was compared.
    pub outputs_compared: u64,
    /// Always 0: none was compared.
    pub outputs_equal: u64,
    /// Always null: it is not known.
    pub equal: Option<bool>,
    /// The features that the device lacks.
    pub missing: Vec<Unfit>,
}

/// The output of `gapscope replay --find-nan --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindNan {
    #[serde(flatten)]
    pub search: Search,
    /// Sentences that readers must know.
    pub notes: Vec<String>,
}

/// The output of `gapscope replay --fuse --json`. Times are nanoseconds, sizes bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fused {
    /// The chains that were found, and the effect of merging them.
    pub fusion: Fusion,
}

/// The output of `gapscope replay --dump --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DumpedBuffer {
    /// The file that was written.
    pub dumped: Dumped,
    /// Sentences that readers must know.
    pub notes: Vec<String>,
}

/// The output of `gapscope replay --export --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExportedFolder {
    /// The folder that was written.
    pub exported: Exported,
    /// Sentences that readers must know.
    pub notes: Vec<String>,
}

/// The output of `gapscope replay --shrink --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShrunkCapture {
    /// The capture that was written.
    pub shrunk: Shrunk,
    /// Sentences that readers must know.
    pub notes: Vec<String>,
}
