//! Adds the trace's counters, quantities over time, to the groups (drawn owners of tracks) of GPUs or of the machine.

use super::{Counter, Group};
use crate::texts::cut;
use gapscope_timeline::counters::{self, CounterOwner, Sample};
use gapscope_timeline::vocabulary::Vocabulary;

/// Adds each counter with samples to its owner's group, that of a queue to its GPU's. `gpus` are the groups of the
/// timeline's GPUs and then that of unknown devices. A counter whose group is missing goes to the machine.
pub(super) fn add(
    counters: Vec<counters::Counter>,
    names: &Vocabulary,
    gpus: &mut [Group],
    machine: &mut Group,
) {
    for counter in counters {
        if counter.samples.is_empty() {
            continue;
        }
        let (group, name) = match counter.owner {
            CounterOwner::Gpu(gpu) => (gpus.get_mut(gpu), counter.name),
            CounterOwner::Queue(queue) => {
                let gpu = names.gpus().of_queue(queue);
                let name = format!("{} · {}", names.queue(queue), counter.name);
                (gpus.get_mut(gpu.unwrap_or(names.gpus().count())), name)
            }
            CounterOwner::Host => (None, counter.name),
        };
        let end_ns = counter.samples.last().and_then(end_of);
        group.unwrap_or(machine).counters.push(Counter {
            name: cut(&name),
            unit: counter.unit,
            samples: counter.samples,
            end_ns,
        });
    }
}

/// Returns the time at which the value of a sample ceases to be known; `None` if it holds to the end.
fn end_of(sample: &Sample) -> Option<i64> {
    Some(sample.start_ns.saturating_add(sample.duration_ns?))
}
