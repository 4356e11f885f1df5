//! Keeps the pending instances of each queue: those that have been submitted and whose results have not been
//! collected. An instance is one execution of a command recording.

use crate::handles::lock;
use crate::timing::brackets::Bracket;
use crate::timing::command_recording::Timing;
use gapscope_spool::event::Outcome;
use gapscope_spool::ids;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// An instance whose results have not been collected.
pub struct PendingInstance {
    pub instance: ids::Instance,
    pub times: TimeSource,
}

/// The queries that hold an instance's times.
pub enum TimeSource {
    /// Timestamps inside the instance.
    Inside(Arc<Timing>),
    /// Timestamps around the instance (a bracket: two command buffers that write them), and also inside the instance
    /// if no other instance of the recording is pending with it.
    Around(Bracket, Option<Arc<Timing>>),
    /// The instance has no times, for this reason.
    None(Outcome),
}

impl TimeSource {
    /// Returns the queries whose results are waited for: of those around an instance only the two of the bracket.
    fn timing(&self) -> Option<&Arc<Timing>> {
        match self {
            TimeSource::Inside(timing) => Some(timing),
            TimeSource::Around(bracket, _) => Some(&bracket.timing),
            TimeSource::None(_) => None,
        }
    }

    /// Returns the number of those queries, including those of secondaries (recordings that the recording executes).
    fn query_count(&self) -> u32 {
        self.timing().map_or(0, |timing| timing.query_count())
    }

    /// Returns whether the results of the instance can be read.
    pub fn has_arrived(&self) -> bool {
        self.timing().is_none_or(|timing| timing.has_arrived())
    }
}

/// The pending instances of a device.
#[derive(Default)]
pub struct PendingInstances {
    /// The instances of each queue, in the order of submission.
    queues: Mutex<Vec<(ids::Queue, VecDeque<PendingInstance>)>>,
}

impl PendingInstances {
    /// Adds the instances of a submission to those of its queue.
    pub fn add(&self, queue: ids::Queue, instances: impl Iterator<Item = PendingInstance>) {
        let mut queues = lock(&self.queues);
        match queues.iter_mut().find(|(id, _)| *id == queue) {
            Some((_, pending)) => pending.extend(instances),
            None => queues.push((queue, instances.collect())),
        }
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.queues)
            .iter()
            .all(|(_, pending)| pending.is_empty())
    }

    /// Takes one instance that has finished and has at most so many queries: the first of a queue, since the
    /// instances of one queue finish in order, or nearly so.
    pub fn take_finished(&self, most_queries: u32) -> Option<PendingInstance> {
        lock(&self.queues).iter_mut().find_map(|(_, pending)| {
            pending.pop_front_if(|first| {
                first.times.query_count() <= most_queries && first.times.has_arrived()
            })
        })
    }

    /// Takes the first instance whose times are in the queries of a command recording or of one that executes it.
    pub fn take_timed_by(&self, timing: &Arc<Timing>) -> Option<PendingInstance> {
        lock(&self.queues).iter_mut().find_map(|(_, pending)| {
            let index = pending.iter().position(
                |p| matches!(&p.times, TimeSource::Inside(inside) if uses(inside, timing)),
            )?;
            pending.remove(index)
        })
    }

    /// Takes all pending instances.
    pub fn take_all(&self) -> Vec<PendingInstance> {
        lock(&self.queues)
            .iter_mut()
            .flat_map(|(_, pending)| pending.drain(..))
            .collect()
    }
}

/// Returns whether `timing` is that of a recording, or of one of the secondaries that the recording executes.
fn uses(recording: &Arc<Timing>, timing: &Arc<Timing>) -> bool {
    Arc::ptr_eq(recording, timing) || recording.children.iter().any(|child| uses(child, timing))
}
