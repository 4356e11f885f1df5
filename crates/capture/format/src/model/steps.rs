//! What happened in the window, in order.

use serde::{Deserialize, Serialize};

use super::{CommandsId, MemoryId, QueueId, SemaphoreId};
use crate::content::Hash;

/// Bytes of an allocation. Its chunks follow each other and have [`crate::CHUNK_BYTES`] each but for the first, which ends at a multiple of that,
/// and the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The allocation.
    pub memory: MemoryId,
    /// Where they begin in it.
    pub offset: u64,
    /// The chunks.
    pub chunks: Vec<Hash>,
    /// Why they are here.
    pub cause: ContentCause,
}

/// Why content is in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentCause {
    /// The next submission is the first of the window that may touch it.
    FirstUse,
    /// The host wrote since the last submission.
    HostWrite,
}

/// A call of `vkQueueSubmit`, with its batches; of one that a window of dispatches cuts, what is in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The queue.
    pub queue: QueueId,
    /// Nanoseconds since the window began, when the program called.
    pub called_ns: u64,
    /// How long the device worked on it, alone, from the first command to the last, in nanoseconds; none where the queue has no timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// In order.
    pub batches: Vec<Batch>,
}

/// `VkSubmitInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Semaphores that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<SemaphoreUse>,
    /// What runs.
    pub commands: Vec<CommandsId>,
    /// Semaphores that it signals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SemaphoreUse>,
}

/// A wait or a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreUse {
    /// The semaphore.
    pub semaphore: SemaphoreId,
    /// Of a timeline: its value; of a binary one: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// `VkPipelineStageFlags2` that wait, or after which it is signalled.
    pub stages: u64,
}

/// What an allocation holds, by hash: as [`Content`], and the chunks need not be in `content.bin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The allocation.
    pub memory: MemoryId,
    /// Where it begins in it.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// Of each piece.
    pub hashes: Vec<Hash>,
}

/// How the window ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why there.
    pub reason: EndReason,
    /// Nanoseconds since the window began.
    pub after_ns: u64,
}

/// Why a window ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// As asked for.
    Complete,
    /// The program ended, or destroyed the device, first.
    ProgramEnded,
    /// What came next cannot be captured right; it and what followed is not here.
    Refused(String),
    /// Something went wrong that has nothing to do with the program: no space on the disk.
    Failed(String),
}
