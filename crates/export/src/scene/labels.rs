//! Labels, drawn before all else, so that their table need not be in memory beside dispatches.

use super::owners::{SlicesByOwner, ThreadKey};
use crate::lanes::{self, Sharing};
use crate::packed::Lane;
use crate::slice::{Kind, Slice};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::QueueId;
use gapscope_trace::parallel;
use gapscope_trace::tables::{MarkerScope, Markers, Table};
use rustc_hash::FxHashMap;

/// The labels of a trace, as they are drawn.
#[derive(Debug, Default)]
pub struct Labels {
    /// In the order in which the table names them.
    owners: Vec<(Owner, Vec<Lane>)>,
    pub(super) drawn: u64,
    pub(super) rows: usize,
    /// From the first start to the last end.
    pub(super) times: Option<Interval>,
}

/// What labels are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    /// Command buffers of a queue, by the device's time.
    CommandBuffers(QueueId),
    /// A queue, by the host's time.
    Queue(QueueId),
    Thread(ThreadKey),
}

impl Labels {
    /// The labels of a table, which is not needed any more.
    pub fn of(table: &Markers) -> Labels {
        let mut labels = Labels {
            rows: table.len(),
            ..Labels::default()
        };
        let times = |row| Interval::from_row(table.start_ns.at(row), table.duration_ns.at(row));
        let mut places: FxHashMap<Owner, usize> = FxHashMap::default();
        let mut owners: Vec<(Owner, Vec<u32>)> = Vec::new();
        for row in 0..table.len() {
            let Some(interval) = times(row) else { continue };
            labels.drawn += 1;
            let before = labels.times.unwrap_or(interval);
            labels.times = Some(before.hull(interval));
            let owner = match (table.queue.at(row), table.scope[row]) {
                (Some(queue), MarkerScope::CommandBuffer) => Owner::CommandBuffers(queue),
                (Some(queue), MarkerScope::Queue) => Owner::Queue(queue),
                _ => Owner::Thread(ThreadKey {
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
            times(row as usize).map(|interval| Slice {
                start_ns: interval.start_ns,
                end_ns: interval.end_ns,
                row,
                flow: 0,
                kind: Kind::Marker,
            })
        };
        // Not more at once than are worked on: slices take eight times the space of their rows.
        labels.owners = parallel::each(owners, |(owner, rows)| {
            let mut slices = Vec::with_capacity(rows.len());
            slices.extend(rows.into_iter().filter_map(slice));
            let lanes = lanes::split(slices, Sharing::Nested).into_iter();
            let lanes = lanes.map(|slices| Lane::of_labels(slices, table));
            (owner, lanes.collect())
        });
        labels
    }

    /// Puts them where they are drawn.
    pub(super) fn place(self, slices: &mut SlicesByOwner) {
        for (owner, lanes) in self.owners {
            match owner {
                Owner::CommandBuffers(queue) => {
                    let place = slices.queue(queue);
                    slices.queues[place].labels = lanes;
                }
                Owner::Queue(queue) => {
                    let place = slices.queue(queue);
                    slices.queues[place].host_labels = lanes;
                }
                Owner::Thread(key) => slices.threads.entry(key).or_default().labels = lanes,
            }
        }
    }
}
