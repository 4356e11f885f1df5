//! Compares the bytes that a command must move with the bandwidth of the device: how long they take at least, and
//! which share of the bandwidth the command reached. Bytes are certain where the access is known exactly.

use std::collections::HashMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bytes::ByteSet;
use crate::graph::{Access, Node};

/// The bandwidth between a device and its memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bandwidth {
    /// Bytes read and written, a second.
    pub bytes_per_s: f64,
    /// How and where the bandwidth was measured.
    pub source: String,
}

/// Why the bandwidth of a device is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownBandwidth {
    /// Nobody asked to measure it.
    #[error("the device's bandwidth has not been measured")]
    NotMeasured,
    /// Without timestamps it cannot be measured.
    #[error("the device's queue has no timestamps")]
    NoTimestamps,
    /// Measuring failed, for this reason.
    #[error("the device's bandwidth cannot be measured: {0}")]
    Failed(String),
}

impl Bandwidth {
    /// Returns the number of nanoseconds that a number of bytes takes.
    pub fn time_ns(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_s * 1e9
    }
}

impl Node {
    /// Returns the number of different bytes that the node reads, and the number that it writes; upper bounds unless
    /// the node is exact.
    pub fn bytes(&self) -> (u64, u64) {
        self.sums(&|_| true)
    }

    /// Returns the number of different bytes that the node certainly reads, plus those that it certainly writes;
    /// `None` if no byte is certain.
    pub fn least_bytes(&self) -> Option<u64> {
        let is_exact = |access: &Access| access.bound.is_none();
        if !self.is_exact() && !self.accesses.iter().any(is_exact) {
            return None;
        }
        let (read, written) = self.sums(&is_exact);
        Some(read.saturating_add(written))
    }

    /// Returns the share of a bandwidth that the node's certain bytes reach in its time; `None` if the bytes or the
    /// time are not known. A share above 1 means that caches serve a part of the bytes.
    pub fn bandwidth_share(&self, bandwidth: &Bandwidth) -> Option<f64> {
        let took = self.duration_ns.filter(|ns| *ns > 0)?;
        Some(bandwidth.time_ns(self.least_bytes()?) / took as f64)
    }

    /// Returns the numbers of different bytes that are read, and written, by the accesses that `counts` selects.
    fn sums(&self, counts: &dyn Fn(&Access) -> bool) -> (u64, u64) {
        let sum = |writes: bool| {
            let mut by_memory: HashMap<u64, Vec<Range<u64>>> = HashMap::new();
            let accesses = self.accesses.iter().filter(|access| counts(access));
            for access in accesses.filter(|access| access.writes() == writes) {
                let ranges = by_memory.entry(access.memory).or_default();
                ranges.extend(access.set.shifted(access.offset));
            }
            let sets = by_memory.into_values().map(ByteSet::from_unsorted);
            sets.map(|set| set.bytes()).fold(0, u64::saturating_add)
        };
        (sum(false), sum(true))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scope::Scope;

    fn access(range: Range<u64>, scope: Scope, bound: Option<&str>) -> Access {
        Access {
            memory: 0,
            offset: 0,
            set: Arc::new(ByteSet::from_range(range)),
            scope,
            bound: bound.map(str::to_owned),
            atomic: false,
            buffer: "b".into(),
            map: None,
            binding: None,
        }
    }

    #[test]
    fn each_byte_counts_once_for_reading_and_once_for_writing() {
        let mut node = Node {
            accesses: vec![
                access(0..100, Scope::StorageRead, None),
                access(50..150, Scope::StorageRead, None),
                access(0..50, Scope::StorageWrite, None),
            ],
            duration_ns: Some(400),
            ..Node::default()
        };
        assert_eq!(node.least_bytes(), Some(200));
        // One byte a nanosecond.
        let bandwidth = Bandwidth {
            bytes_per_s: 1e9,
            source: String::new(),
        };
        assert_eq!(node.bandwidth_share(&bandwidth), Some(0.5));
        // Bounded bytes are not certain, but the others are.
        node.accesses
            .push(access(1000..9000, Scope::StorageRead, Some("gathered")));
        assert_eq!(node.bytes(), (8150, 50));
        assert_eq!(node.least_bytes(), Some(200));
        node.accesses.drain(..3);
        assert_eq!(node.least_bytes(), None);
        assert_eq!(node.bandwidth_share(&bandwidth), None);
    }
}
