//! The records of what happened in the window (the captured part of the program's run), in order: content,
//! submissions, outcomes and the end.

use serde::{Deserialize, Serialize};

use super::{CommandsId, MemoryId, QueueId, SemaphoreId};
use crate::content::Hash;

/// Bytes of an allocation. The chunks follow each other. Each has [`crate::CHUNK_BYTES`] bytes but for the first,
/// which ends at a multiple of that, and the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The allocation.
    pub memory: MemoryId,
    /// Offset of the first byte in the allocation.
    pub offset: u64,
    /// Hashes of the chunks.
    pub chunks: Vec<Hash>,
    /// Why the content is in the capture.
    pub cause: ContentCause,
}

/// Why content is in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentCause {
    /// The next submission is the first of the window that may touch the bytes.
    FirstUse,
    /// The host wrote the bytes since the last submission.
    HostWrite,
}

/// A call of `vkQueueSubmit` with its batches. Where a window of dispatches cuts a call, this is the part in the
/// window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The queue.
    pub queue: QueueId,
    /// Nanoseconds from the begin of the window to the program's call.
    pub called_ns: u64,
    /// Nanoseconds that the device worked on this submission alone, from its first command to its last; `None` if the
    /// queue has no timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// Batches in order.
    pub batches: Vec<Batch>,
}

impl Submission {
    /// Returns a submission of these commands alone, of whose times nothing is known.
    pub fn with_commands(queue: QueueId, commands: CommandsId) -> Submission {
        let commands = vec![commands];
        let batch = Batch {
            commands,
            ..Batch::default()
        };
        Submission {
            queue,
            batches: vec![batch],
            ..Submission::default()
        }
    }
}

/// `VkSubmitInfo`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Semaphores that the batch waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<SemaphoreUse>,
    /// Commands that run.
    pub commands: Vec<CommandsId>,
    /// Semaphores that the batch signals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SemaphoreUse>,
}

/// A wait for a semaphore, or a signal of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreUse {
    /// The semaphore.
    pub semaphore: SemaphoreId,
    /// Value of a timeline semaphore; `None` if the semaphore is binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// `VkPipelineStageFlags2` that wait, or after which the semaphore is signalled.
    pub stages: u64,
}

/// Hashes of the bytes that an allocation holds after the submissions before, which a replay is compared with. They
/// are split as in [`Content`], but the chunks need not be in `content.bin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The allocation.
    pub memory: MemoryId,
    /// Offset of the first byte in the allocation.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Hashes of the pieces.
    pub hashes: Vec<Hash>,
}

/// The end of the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why the window ended.
    pub reason: EndReason,
    /// Nanoseconds since the window began.
    pub after_ns: u64,
}

/// Why a window ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The window that was asked for is complete.
    #[default]
    Complete,
    /// The program ended, or destroyed the device, before the window was complete.
    ProgramEnded,
    /// The next work cannot be captured right, for this reason. Neither that work nor what followed is in the
    /// capture.
    Refused(String),
    /// Writing failed for a reason outside the program, such as a full disk.
    Failed(String),
}
