//! Figures over time.

use super::{Counter, Group, Unit};
use gapscope_analysis::{Timeline, series};

/// Device memory that the programs had allocated, for each GPU.
pub(super) fn memory(timeline: &Timeline, groups: &mut [Group]) {
    for (gpu, samples) in series::memory(timeline) {
        groups[gpu].counters.push(Counter {
            name: "device memory allocated".to_owned(),
            unit: Unit::Bytes,
            samples,
        });
    }
}

/// Submissions of a queue that are not finished: from the begin of the call to the end of their last work.
pub(super) fn queue_depth(queue: &str, outstanding: &[(i64, i64)]) -> Counter {
    Counter {
        name: format!("{queue} · submissions outstanding"),
        unit: Unit::Count,
        samples: series::depth(outstanding),
    }
}
