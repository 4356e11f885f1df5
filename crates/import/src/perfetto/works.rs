//! Keeps the work of devices until the file is read, takes the times away that cannot be true, and writes the rows.

use super::build::Builder;
use super::work::{Work, WorkRow};
use crate::Error;
use crate::doubtful_times;
use crate::doubtful_times::queues::{Doubts, TimedWork};
use crate::stray_devices;
use gapscope_timeline_builder::{WorkPlace, rows};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{DeviceId, QueueId};
use gapscope_trace::manifest::Api;
use rustc_hash::{FxHashMap, FxHashSet};

impl Builder {
    /// Takes the impossible times of all work away, and writes the rows.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(super) fn write_works(&mut self) -> Result<(), Error> {
        let mut works = std::mem::take(&mut self.works);
        self.drop_strays(&mut works);
        self.doubt_times(&mut works);
        for work in works {
            match work.span {
                Some(span) => self.inventory.spans(span.start_ns, span.end_ns()),
                None => {
                    let reason = doubtful_times::IMPOSSIBLE;
                    self.inventory.lose(LossKind::DispatchTimes, 1, reason);
                }
            }
            if let Some(key) = work.command_buffer {
                self.ran_in_command_buffer(key, work.span);
            }
            let mut place = WorkPlace {
                start_ns: work.span.map(|span| span.start_ns),
                duration_ns: work.span.map(|span| span.duration_ns),
                ..work.place
            };
            // A call of gapscope's own exports names the first piece of its work alone.
            if let Some(number) = work.own_submission
                && (place.command_buffer, place.submission) == (None, None)
            {
                place.submission = self.own_submissions.get(&number).copied();
                let is_unknown = u64::from(place.submission.is_none());
                let reason = "the file does not have the calls that submitted them";
                self.inventory
                    .lose(LossKind::HostCallsOfWork, is_unknown, reason);
            }
            let tables = self.trace.tables_mut();
            match work.row {
                WorkRow::Dispatch(kernel, groups) => {
                    rows::dispatch(tables, place, kernel, groups, None);
                }
                WorkRow::Transfer(facts) => rows::transfer(tables, place, facts),
                WorkRow::Opaque(kind) => rows::opaque_work(tables, place, kind),
            }
            self.trace.flush()?;
        }
        Ok(())
    }

    /// Leaves out devices that are none, with their work. A device of which the file has calls, command buffers or other work is one.
    fn drop_strays(&mut self, works: &mut Vec<Work>) {
        let inventory = &self.inventory;
        let mut rows: FxHashMap<DeviceId, u64> = FxHashMap::default();
        let mut is_known: FxHashSet<DeviceId> = FxHashSet::default();
        for work in works.iter() {
            let device = inventory.device_of(work.place.queue);
            *rows.entry(device).or_default() += 1;
            let is_opaque = matches!(work.row, WorkRow::Opaque(_));
            let is_submitted = work.place.submission.is_some_and(|id| self.is_written(id));
            if is_opaque || work.command_buffer.is_some() || is_submitted {
                is_known.insert(device);
            }
        }
        let numbers = inventory.device_numbers();
        let numbered: FxHashMap<DeviceId, u32> = numbers.map(|(number, id)| (id, number)).collect();
        let is_described = |device: DeviceId| {
            let number = numbered.get(&device);
            number.is_none_or(|number| (*number as usize) < self.first_pass.gpus.len())
        };
        let mut strays = stray_devices::find(&rows, is_described);
        strays.retain(|device| !is_known.contains(device));
        if strays.is_empty() {
            return;
        }
        let (mut dispatches, mut transfers) = (0, 0);
        works.retain(|work| {
            let is_stray = strays.contains(&inventory.device_of(work.place.queue));
            match work.row {
                _ if !is_stray => {}
                WorkRow::Transfer(_) => transfers += 1,
                WorkRow::Dispatch(..) | WorkRow::Opaque(_) => dispatches += 1,
            }
            !is_stray
        });
        for (kind, count) in [
            (LossKind::Dispatches, dispatches),
            (LossKind::Transfers, transfers),
        ] {
            self.inventory.lose(kind, count, stray_devices::STRAY);
        }
        self.inventory.forget_devices(&strays);
    }

    /// Takes the times away that contradict those of other work of the same queue.
    fn doubt_times(&mut self, works: &mut [Work]) {
        let mut queues: FxHashMap<QueueId, Vec<TimedWork>> = FxHashMap::default();
        for work in works {
            let is_kernel = matches!(work.row, WorkRow::Dispatch(..));
            let is_opaque = matches!(work.row, WorkRow::Opaque(..));
            if work.span.is_some() && work.command_buffer.is_none() && !is_opaque {
                let of_queue = queues.entry(work.place.queue).or_default();
                of_queue.push(TimedWork {
                    span: &mut work.span,
                    is_kernel,
                });
            }
        }
        let mut doubts = Doubts::default();
        for (queue, works) in queues {
            let is_stream =
                self.streams.contains(&queue) || self.inventory.api_of(queue) == Api::Cuda;
            doubts.add_queue(works, is_stream);
        }
        doubts.note(&mut self.inventory);
    }
}
