//! Label breakdown: which parts of the program cost what.

use crate::durations::Durations;
use serde::Serialize;

/// All GPU work under one label path, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LabelRow {
    /// Texts from the outermost label to this one, joined by ` / `.
    pub path: String,
    /// This label's own text.
    pub text: String,
    /// Labels around it.
    pub depth: u32,
    /// Times that the label was set; absent when the trace has no markers for it.
    pub instances: Option<u64>,
    /// Work under this label and the labels inside it.
    pub inclusive: LabelWork,
    /// Work under this label and no label inside it.
    pub exclusive: LabelWork,
}

/// GPU work under a label.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LabelWork {
    /// Dispatches, with or without known times.
    pub dispatch_count: u64,
    /// Transfers.
    pub transfer_count: u64,
    /// Durations of the timed dispatches; in `command-buffer` mode of the command buffers with this label.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one piece of its work ran, transfers and opaque work included.
    pub busy_ns: Option<i64>,
}
