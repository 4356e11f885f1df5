//! Half-open intervals of time and their sets.

use serde::Serialize;

/// A half-open interval of nanoseconds, `start_ns..end_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Interval {
    /// Its first nanosecond.
    pub start_ns: i64,
    /// The nanosecond after its last.
    pub end_ns: i64,
}
