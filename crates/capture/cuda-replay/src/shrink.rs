//! Finds the pages of a capture's memory that its launches need, and writes a capture in which the other pages are zero: a window of
//! launches reaches whole allocations, of which its kernels read and write a part.
//!
//! [`find_spare_pages`] asks whether the launches compute the same while pages have other bytes, for ever smaller parts of memory. A
//! [`Trial`] answers on the GPU. A kernel that reads a wrong pointer ends the process that runs it, so that the two are in processes of
//! their own, and [`Request`] and [`Reply`] go between them.

mod pages;
mod search;
mod trial;
mod written;

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pages::{PAGE_BYTES, Pages};
pub use search::{Compares, find_spare_pages};
pub use trial::Trial;

/// The bytes that pages have instead of the captured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// 0xFF, which is no number where floats are read.
    Ones,
    /// The captured bytes with each bit inverted: no byte stays as it was.
    Inverted,
    /// What the written capture has.
    Zeros,
}

impl Fill {
    /// All fills. Pages are spare if launches compute the same with each of them.
    pub const ALL: [Fill; 3] = [Fill::Ones, Fill::Inverted, Fill::Zeros];

    /// Replaces the captured bytes.
    fn put(self, bytes: &mut [u8]) {
        match self {
            Fill::Ones => bytes.fill(0xff),
            Fill::Inverted => bytes.iter_mut().for_each(|byte| *byte = !*byte),
            Fill::Zeros => bytes.fill(0),
        }
    }
}

/// A question to the process that has the GPU.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Whether the launches compute the same while these pages have other bytes, and whether that is to be looked at thoroughly. Pages are
    /// given by ranges of their numbers, in order.
    Compare(Fill, Vec<Range<u64>>, bool),
    /// Writes the capture in which these pages are zero to a folder that does not exist.
    Write(std::path::PathBuf, Vec<Range<u64>>),
}

/// An answer of the process that has the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The capture is on the GPU, and its launches computed what they computed in the program.
    Ready,
    /// All launches computed the same, or not.
    Compared(bool),
    /// A launch failed, as by a wrong pointer. The process ends.
    LaunchFailed,
    /// The capture was written.
    Written,
    /// Nothing can be done, with a sentence. The process ends.
    Failed(String),
}

/// A capture with fewer pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Shrunk {
    /// Pages of at most 4,096 bytes with captured content.
    pub pages: u64,
    /// Pages that launches need, which are in the new capture.
    pub pages_kept: u64,
    /// Bytes of the captured content.
    pub bytes: u64,
    /// Bytes of the pages that are kept.
    pub bytes_kept: u64,
    /// Runs of the window that told the pages apart.
    pub runs: u64,
    /// Runs among them in which a launch failed.
    pub failed_runs: u64,
}
