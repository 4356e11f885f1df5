//! Labels: what the program says of its own work.

use crate::ids;
use serde::{Deserialize, Serialize};

/// Where a label is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelScope {
    /// On a queue: it covers what is submitted to it until its end.
    Queue(ids::Queue),
    /// On the writing thread.
    Thread,
    /// On the writing thread, in a domain (of NVTX): its labels nest among themselves only.
    Domain(ids::LabelDomain),
    /// On the process: it may end on another thread and overlap others in any way. At its end it has no text.
    Range {
        /// Its domain.
        domain: ids::LabelDomain,
        /// Tells ranges apart.
        range: ids::LabelRange,
    },
}

/// Which end of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum LabelEdge {
    Begin,
    End,
    Instant,
}

/// The value that a program gave a label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Payload {
    /// A count.
    Unsigned(u64),
    /// A number.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
}
