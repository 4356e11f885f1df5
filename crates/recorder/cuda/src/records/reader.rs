//! Reads all records of a process: keeps the devices, queues, kernels and routes (queues, kinds and memory of
//! transfers) that records name, packs activities (work, waits, overheads) into batches, and writes these as events.

use super::kernels::Kernels;
use super::losses::Losses;
use super::memory::Memory;
use super::queues::Queues;
use super::routes::Routes;
use crate::cupti::fields::{Field, Record};
use crate::recorder::Recorder;
use crate::streams::StreamId;
use crate::wait_ring::Operation;
use gapscope_spool::event::{ActivityBatch, CudaEvent, Packer, Span};
use gapscope_spool::ids;

/// A batch with at least this many bytes is written; each flush writes what there is.
const BATCH_BYTES: usize = 32 << 10;

/// The reader of all records of a process.
pub struct Reader {
    pub recorder: &'static Recorder,
    /// The activities (pieces of work, waits and the like) of the current batch, in packed form.
    pub packer: Packer,
    /// The activities in the batches that have been written.
    written: u64,
    pub queues: Queues,
    pub kernels: Kernels,
    pub routes: Routes,
    pub memory: Memory,
    /// The waits, records of events and submissions in contexts that are not known yet.
    pub waiting: Vec<Operation>,
    pub losses: Losses,
    /// The latest end of work for each device (by CUPTI's number) in the buffer of records that is being read.
    ends: Vec<(u32, i64)>,
}

impl Reader {
    pub fn new(recorder: &'static Recorder) -> Reader {
        Reader {
            recorder,
            packer: Packer::new(BATCH_BYTES),
            written: 0,
            queues: Queues::default(),
            kernels: Kernels::default(),
            routes: Routes::default(),
            memory: Memory::default(),
            waiting: Vec::new(),
            losses: Losses::default(),
            ends: Vec::new(),
        }
    }

    /// Writes the activities of the current batch, if any, and the counted losses.
    pub fn write(&mut self) {
        let count = self.packer.count();
        if count > 0 {
            self.recorder.write(&CudaEvent::Activities(ActivityBatch {
                first: self.written,
                count,
                bytes: self.packer.bytes(),
            }));
            self.written += u64::from(count);
            self.packer.clear();
        }
        self.losses.write(self.recorder);
    }

    /// Writes the records that have been read if they fill a batch.
    #[inline]
    pub fn write_full(&mut self) {
        if self.packer.is_full() {
            self.write();
        }
    }

    /// Writes the activities that are not written yet, the devices, and an empty batch with the total count.
    pub fn close(&mut self) {
        self.write();
        self.queues.devices.close(self.recorder);
        self.recorder.write(&CudaEvent::Activities(ActivityBatch {
            first: self.written,
            count: 0,
            bytes: &[],
        }));
    }

    /// Notes that work on a device has ended.
    #[inline]
    pub fn ended(&mut self, device: u32, span: Option<Span>) {
        let Some(end_ns) = span.map(|span| span.end_ns()) else {
            return;
        };
        match self.ends.iter_mut().find(|(known, _)| *known == device) {
            Some((_, latest_ns)) => *latest_ns = end_ns.max(*latest_ns),
            None => self.ends.push((device, end_ns)),
        }
    }

    /// Writes for each device, after a buffer of records was read, when the buffer came and its latest work ended.
    pub fn write_delivery(&mut self, at_ns: i64) {
        for (device, end_ns) in self.ends.drain(..) {
            let device = self.queues.devices.id(device, self.recorder);
            self.recorder.write(&CudaEvent::Delivered {
                device,
                end_ns,
                at_ns,
            });
        }
    }

    /// Returns the queue of work on a device.
    ///
    /// # Safety
    /// The record has these fields.
    #[inline]
    pub unsafe fn queue(
        &mut self,
        record: &Record<'_>,
        [device, context, stream]: [Field<u32>; 3],
    ) -> ids::Queue {
        // SAFETY: as the caller promises.
        let [device, context, stream] =
            unsafe { [record.get(device), record.get(context), record.get(stream)] };
        let stream = StreamId { context, stream };
        self.queues.of_stream(device, stream, self.recorder)
    }
}
