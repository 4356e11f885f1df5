//! Figures over time.

use super::groups::gpu_of_device;
use super::{Counter, Group, Unit};
use gapscope_analysis::Timeline;
use gapscope_trace::tables::MemoryEvent;
use std::collections::{BTreeMap, HashMap};

/// Device memory that the programs had allocated, for each GPU.
pub(super) fn memory(timeline: &Timeline, groups: &mut [Group]) {
    let rows = &timeline.trace.tables.memory;
    let mut order: Vec<usize> = (0..rows.at_ns.len()).collect();
    // At one time, what is freed makes room for what is allocated.
    order.sort_by_key(|row| (rows.at_ns[*row], rows.event[*row] != MemoryEvent::Free));
    let mut gpus: HashMap<u32, Option<usize>> = HashMap::new();
    let mut live: HashMap<(u32, u32, u32), u64> = HashMap::new();
    let mut steps: BTreeMap<usize, Vec<(i64, i128)>> = BTreeMap::new();
    for row in order {
        let device = rows.device[row];
        let gpu = gpus.entry(device);
        let gpu = gpu.or_insert_with(|| gpu_of_device(timeline, device));
        let Some(gpu) = *gpu else { continue };
        let key = (rows.process[row], device, rows.allocation[row]);
        let step = match rows.event[row] {
            MemoryEvent::Allocate => {
                live.insert(key, rows.bytes[row]);
                i128::from(rows.bytes[row])
            }
            // What the trace does not show allocated is not subtracted.
            MemoryEvent::Free => match live.remove(&key) {
                Some(bytes) => -i128::from(bytes),
                None => continue,
            },
            MemoryEvent::Unknown => continue,
        };
        steps.entry(gpu).or_default().push((rows.at_ns[row], step));
    }
    for (gpu, steps) in steps {
        groups[gpu].counters.push(Counter {
            name: "device memory allocated".to_owned(),
            unit: Unit::Bytes,
            samples: sums(steps),
        });
    }
}

/// Submissions of a queue that are not finished: from the begin of the call to the end of their last work.
pub(super) fn queue_depth(queue: &str, outstanding: &[(i64, i64)]) -> Counter {
    let begins = outstanding.iter().map(|(begin_ns, _)| (*begin_ns, 1));
    let ends = outstanding.iter().map(|(_, end_ns)| (*end_ns, -1));
    let mut steps: Vec<(i64, i128)> = begins.chain(ends).collect();
    steps.sort_unstable();
    Counter {
        name: format!("{queue} · submissions outstanding"),
        unit: Unit::Count,
        samples: sums(steps),
    }
}

/// The values after all steps of each time.
fn sums(steps: Vec<(i64, i128)>) -> Vec<(i64, u64)> {
    let mut samples: Vec<(i64, u64)> = Vec::new();
    let mut value = 0i128;
    for (at_ns, step) in steps {
        value += step;
        let sample = (at_ns, u64::try_from(value.max(0)).unwrap_or(u64::MAX));
        match samples.last_mut() {
            Some(last) if last.0 == at_ns => *last = sample,
            _ => samples.push(sample),
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_what_is_outstanding() {
        let counter = queue_depth("queue 0.0", &[(0, 10), (5, 20), (10, 12)]);
        assert_eq!(counter.samples, [(0, 1), (5, 2), (10, 2), (12, 1), (20, 0)]);
    }
}
