//! Writes the timestamps of a command buffer while it is recorded, in chunks of queries that it takes as it needs
//! them. The order of calls for a recording: `start`; `start_pair` and `end_pair` for each timed command; `finish`,
//! or `reset` where it is forgotten. The first pair times the whole recording; `finish` writes its end.

use crate::api::families::Delivery;
use crate::recorder::Recorder;
use crate::timing::barriers;
use crate::timing::chunk::Chunk;
use crate::timing::command_recording::Timing;
use crate::timing::counting::Counting;
use crate::timing::queries::Queries;
use ash::vk;
use gapscope_spool::event::{LossKind, NO_QUERY};
use gapscope_spool::ids;
use std::sync::Arc;

/// Hands out the queries of one command recording.
pub struct QueryWriter {
    next: &'static ash::Device,
    queries: &'static Queries,
    recorder: &'static Recorder,
    command_buffer: vk::CommandBuffer,
    /// How the results reach the host; [`Delivery::None`] where nothing is timed.
    delivery: Delivery,
    /// Whether the command recording may run twice at once.
    simultaneous: bool,
    /// The chunks, with the number of queries used in each.
    chunks: Vec<(Chunk, u32)>,
    /// The pool of the newest chunk.
    open_pool: vk::QueryPool,
    /// The first unused query of that chunk, by its index in the pool.
    open_next: u32,
    /// The number of unused queries of that chunk.
    open_left: u32,
    /// The index of the next query among those of the command recording.
    next_query: u32,
}

impl QueryWriter {
    pub fn new(
        recorder: &'static Recorder,
        queries: &'static Queries,
        command_buffer: vk::CommandBuffer,
    ) -> QueryWriter {
        QueryWriter {
            next: queries.next,
            queries,
            recorder,
            command_buffer,
            delivery: Delivery::None,
            simultaneous: false,
            chunks: Vec::new(),
            open_pool: vk::QueryPool::null(),
            open_next: 0,
            open_left: 0,
            next_query: 0,
        }
    }

    /// Forgets the command recording, whose timestamps are not used.
    pub fn reset(&mut self) {
        for (chunk, used) in self.chunks.drain(..) {
            // A recording was started and never ended: a timing gives its chunks back when dropped.
            drop(Timing::new(
                self.queries,
                ids::CommandRecording::NONE,
                Delivery::None,
                vec![(chunk, used)],
                Vec::new(),
            ));
        }
        self.open_left = 0;
        self.next_query = 0;
    }

    /// Starts a command recording, whose timestamps are all written outside of render passes.
    pub fn start(&mut self, delivery: Delivery, simultaneous: bool) {
        self.delivery = delivery;
        self.simultaneous = simultaneous;
    }

    /// Writes nothing from here on.
    pub fn give_up(&mut self) {
        self.delivery = Delivery::None;
        self.open_left = 0;
    }

    /// Returns whether some query of the command recording has been handed out.
    pub fn has_queries(&self) -> bool {
        self.next_query > 0
    }

    /// Writes the first timestamp of a pair; returns the index of its query among the recording's, or [`NO_QUERY`]
    /// where it cannot be timed. The other timestamp must be written before the next pair is started.
    #[inline]
    pub fn start_pair(&mut self) -> u32 {
        let query = self.reserve_pair();
        if query != NO_QUERY {
            let stage = vk::PipelineStageFlags::TOP_OF_PIPE;
            self.write(stage, self.open_pool, self.open_next - 2);
        }
        query
    }

    /// Writes the second timestamp of the pair that was started last.
    #[inline]
    pub fn end_pair(&self) {
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        self.write(stage, self.open_pool, self.open_next - 1);
    }

    /// Reserves two queries and returns the index of the first. Both must be written, as the copy of results waits
    /// for them.
    #[inline]
    fn reserve_pair(&mut self) -> u32 {
        if self.open_left < 2 && !self.open_chunk() {
            return NO_QUERY;
        }
        let query = self.next_query;
        self.next_query += 2;
        self.open_next += 2;
        self.open_left -= 2;
        query
    }

    /// Takes another chunk and resets its queries; false where nothing is timed or no chunk is to be had, which is a
    /// loss.
    #[cold]
    fn open_chunk(&mut self) -> bool {
        if self.delivery == Delivery::None {
            return false;
        }
        let Some(mut chunk) = self.queries.take(self.chunks.is_empty()) else {
            self.recorder.loss(
                LossKind::TimestampMemory,
                1,
                "refused by the device, or by a limit on the size of files; what has no times for it is counted by itself",
            );
            return false;
        };
        // SAFETY: the command buffer is being recorded outside a render pass; the chunk is ours alone.
        unsafe {
            match self.delivery {
                Delivery::Asked if !self.simultaneous => chunk.make_reset(self.next),
                _ => {
                    chunk.reset_in(self.next, self.command_buffer);
                    // The queries are written whenever the command buffer runs, recorded or not.
                    chunk.reset = false;
                }
            }
        }
        if let Some(last) = self.chunks.last_mut() {
            last.1 = last.0.count;
        }
        self.open_pool = chunk.pool;
        self.open_next = chunk.first;
        self.open_left = chunk.count;
        self.chunks.push((chunk, 0));
        true
    }

    /// Writes one timestamp, once the given stage of the commands before has been passed.
    #[inline]
    fn write(&self, stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32) {
        // SAFETY: the query has been reset in this recording and is written once.
        unsafe { (self.next).cmd_write_timestamp(self.command_buffer, stage, pool, query) };
    }

    /// Ends the command recording: writes the second timestamp of its first pair, and the commands that deliver the
    /// results. Returns its timing, with those of the secondaries that it executes (`children`), or `None` where
    /// nothing is timed. `counting` counts for hardware counters and ends here, too. `whole` is false where the
    /// recording ends inside a suspended rendering: then nothing may be written, and nobody reads the results.
    pub fn finish(
        &mut self,
        recording: ids::CommandRecording,
        children: Vec<Arc<Timing>>,
        counting: Option<Counting>,
        whole: bool,
    ) -> Option<Arc<Timing>> {
        let (cb, next) = (self.command_buffer, self.next);
        if let Some((chunk, _)) = self.chunks.first().filter(|_| whole) {
            let (pool, end) = (chunk.pool, chunk.first + 1);
            self.write(vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, end);
        }
        if let Some(last) = self.chunks.last_mut() {
            last.1 = last.0.count - self.open_left;
        }
        if whole && self.delivery == Delivery::Copied && !self.chunks.is_empty() {
            for (chunk, used) in &self.chunks {
                // SAFETY: the command buffer is being recorded outside a render pass, and every reserved query has
                // been written.
                unsafe { chunk.copy_results(next, cb, *used) };
            }
            // SAFETY: as above.
            unsafe { barriers::to_host(next, cb) };
        }
        if let Some(counting) = &counting {
            // SAFETY: the command buffer is being recorded outside a render pass; of a suspended rendering it has been cut.
            unsafe { counting.end(cb) };
        }
        self.open_left = 0;
        let chunks = std::mem::take(&mut self.chunks);
        if chunks.is_empty() && children.is_empty() {
            return None;
        }
        self.queries.note_recorded();
        let mut timing = Timing::new(self.queries, recording, self.delivery, chunks, children);
        timing.partial = !whole;
        timing.counting = counting;
        Some(Arc::new(timing))
    }
}
