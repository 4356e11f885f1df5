//! Passes samples of hardware counters (quantities that a GPU counts, such as bytes) to the traces that have the
//! sampled device.

use super::Drain;
use crate::conditions;
use crate::counters::{CounterUpdate, NOT_SAMPLED, WHAT};
use gapscope_trace::manifest::Unmeasured;

impl Drain {
    /// Returns a sentence for each hardware counter that was asked for and not sampled.
    pub fn counter_notes(&self) -> impl Iterator<Item = String> {
        let of_counters = |u: &&Unmeasured| u.what.starts_with(WHAT);
        let unmeasured = self.unmeasured.iter().filter(of_counters);
        unmeasured.map(|u| format!("{NOT_SAMPLED}: {}: {}.", u.what, u.reason))
    }

    /// Adds samples of hardware counters, and what is missing of them, to the traces that they concern.
    pub fn take_counter_updates(&mut self, updates: Vec<CounterUpdate>) {
        for update in updates {
            match update {
                CounterUpdate::Samples {
                    uuid,
                    columns,
                    batch,
                } => {
                    for (assembler, tables) in self.traces_mut() {
                        assembler.counter_samples(&uuid, &columns, &batch, tables);
                    }
                }
                CounterUpdate::Unmeasured(unmeasured) => {
                    self.take_condition_updates(vec![conditions::ConditionUpdate::Unmeasured(
                        unmeasured,
                    )]);
                }
                CounterUpdate::Lost {
                    uuid,
                    kind,
                    count,
                    reason,
                } => {
                    for (assembler, _) in self.traces_mut() {
                        if assembler.has_gpu(&uuid) {
                            assembler.lose(kind.clone(), count, reason.clone());
                        }
                    }
                }
            }
        }
    }
}
