//! Packs the labels of a trace (rows of the table `markers`) into lanes before everything else, so that their table
//! need not be in memory beside dispatches: [`Labels::new`] comes before, and [`Labels::place`] after other slices.

use super::slices_by_owner::{SlicesByOwner, ThreadKey};
use crate::lanes::{self, Sharing};
use crate::packed::Lane;
use crate::slice::{Slice, SliceKind};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::QueueId;
use gapscope_trace::parallel;
use gapscope_trace::tables::{MarkerScope, Markers, Table};
use rustc_hash::FxHashMap;

/// The drawn labels of a trace.
#[derive(Debug, Default)]
pub struct Labels {
    /// The lanes of each owner, in the order in which the table names them.
    owners: Vec<(LabelOwner, Vec<Lane>)>,
    /// The number of labels with times.
    pub(super) drawn: u64,
    /// The number of all labels.
    pub(super) rows: usize,
    /// The time from the first start to the last end.
    pub(super) times: Option<Interval>,
}

/// The owner of labels: where they are drawn. Labels without a queue, or of another scope, are their thread's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LabelOwner {
    /// The command buffers of a queue, by the device's time.
    CommandBuffers(QueueId),
    /// A queue, by the host's time.
    Queue(QueueId),
    Thread(ThreadKey),
}

impl Labels {
    /// Draws the labels of a table, which is not needed any more.
    pub fn new(table: &Markers) -> Labels {
        let mut labels = Labels {
            rows: table.len(),
            ..Labels::default()
        };
        let times = |row| Interval::from_row(table.start_ns.at(row), table.duration_ns.at(row));
        let mut places: FxHashMap<LabelOwner, usize> = FxHashMap::default();
        let mut owners: Vec<(LabelOwner, Vec<u32>)> = Vec::new();
        for row in 0..table.len() {
            let Some(interval) = times(row) else { continue };
            labels.drawn += 1;
            let before = labels.times.unwrap_or(interval);
            labels.times = Some(before.hull(interval));
            let owner = match (table.queue.at(row), table.scope[row]) {
                (Some(queue), MarkerScope::CommandBuffer) => LabelOwner::CommandBuffers(queue),
                (Some(queue), MarkerScope::Queue) => LabelOwner::Queue(queue),
                _ => LabelOwner::Thread(ThreadKey {
                    process: table.process[row],
                    thread: table.thread.at(row),
                }),
            };
            let place = *places.entry(owner).or_insert_with(|| {
                owners.push((owner, Vec::new()));
                owners.len() - 1
            });
            owners[place].1.push(row as u32);
        }
        let slice = |row: u32| {
            let interval = times(row as usize)?;
            Some(Slice::new(SliceKind::Marker, row, interval))
        };
        // Only a few owners at a time are made into slices, which take eight times the space of their rows.
        labels.owners = parallel::each(owners, |(owner, rows)| {
            let mut slices = Vec::with_capacity(rows.len());
            slices.extend(rows.into_iter().filter_map(slice));
            let lanes = lanes::split(slices, Sharing::Nested).into_iter();
            let lanes = lanes.map(|slices| Lane::from_labels(slices, table));
            (owner, lanes.collect())
        });
        labels
    }

    /// Moves the lanes to the queues and threads that they are drawn on.
    pub(super) fn place(self, slices: &mut SlicesByOwner) {
        for (owner, lanes) in self.owners {
            match owner {
                LabelOwner::CommandBuffers(queue) => {
                    let place = slices.queue(queue);
                    slices.queues[place].labels = lanes;
                }
                LabelOwner::Queue(queue) => {
                    let place = slices.queue(queue);
                    slices.queues[place].host_labels = lanes;
                }
                LabelOwner::Thread(key) => slices.threads.entry(key).or_default().labels = lanes,
            }
        }
    }
}
