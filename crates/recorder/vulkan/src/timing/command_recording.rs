//! Keeps the timestamps of one command recording: prepares its queries for each execution, and reads the ticks (raw
//! times of the device) afterwards. An instance is one execution of the recording. Each time: [`Timing::prepare`]
//! before its submission, [`Timing::has_arrived`] until true, then [`Timing::collect`].

use crate::api::families::Delivery;
use crate::handles::lock;
use crate::timing::chunk::Chunk;
use crate::timing::counting::Counting;
use crate::timing::queries::Queries;
use gapscope_spool::event::NO_TICKS;
use gapscope_spool::ids;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The queries of one command recording. It outlives the recording while instances of it are pending.
pub struct Timing {
    pub recording: ids::CommandRecording,
    queries: &'static Queries,
    /// How results reach the host: copied by the command buffer, or asked of the driver.
    delivery: Delivery,
    /// The chunks (ranges of a pool's queries), with the number of queries used in each.
    chunks: Vec<(Chunk, u32)>,
    /// The timings of the secondary command recordings that this one executes.
    pub children: Vec<Arc<Timing>>,
    /// Whether some queries are never written, so that the recording has no times.
    pub partial: bool,
    /// The query that counts while the recording runs.
    pub counting: Option<Counting>,
    /// Whether the queries may have been written since they were reset.
    written: AtomicBool,
    /// Whether the recording has been submitted while the recorder was off: the queries then hold times of no
    /// instance.
    unrecorded: AtomicBool,
    overlap: Mutex<Overlap>,
}

/// The pending instances of a command recording that may run twice at once. The times in its queries are of use
/// only when one instance ran alone.
#[derive(Default)]
struct Overlap {
    /// The number of instances that are pending now.
    outstanding: u32,
    /// Whether two have been pending at once since the last time that none was.
    overlapped: bool,
}

impl Timing {
    pub fn new(
        queries: &'static Queries,
        recording: ids::CommandRecording,
        delivery: Delivery,
        chunks: Vec<(Chunk, u32)>,
        children: Vec<Arc<Timing>>,
    ) -> Timing {
        Timing {
            recording,
            queries,
            delivery,
            chunks,
            children,
            partial: false,
            counting: None,
            written: AtomicBool::new(false),
            unrecorded: AtomicBool::new(false),
            overlap: Mutex::default(),
        }
    }

    /// Returns whether all results have arrived; true for a partial recording, whose results are not awaited.
    pub fn has_arrived(&self) -> bool {
        if self.partial {
            return true;
        }
        self.ended()
            && self
                .chunks
                .iter()
                .rev()
                .all(|chunk| self.has_chunk_arrived(*chunk))
            && self.children.iter().all(|child| child.has_arrived())
            && self.counting.as_ref().is_none_or(Counting::has_arrived)
    }

    /// Returns whether the end of the whole recording, its second query, has arrived. This is cheap to see while the
    /// recording runs.
    fn ended(&self) -> bool {
        self.chunks
            .first()
            .is_none_or(|(chunk, used)| self.has_chunk_arrived((*chunk, 2.min(*used))))
    }

    /// Gets the first `used` results of a chunk, and returns whether all have arrived.
    fn has_chunk_arrived(&self, (chunk, used): (Chunk, u32)) -> bool {
        match self.delivery {
            Delivery::Copied => chunk.receive(self.queries.next),
            Delivery::Asked => chunk.ask(self.queries.next, used),
            Delivery::None => {}
        }
        (0..used).rev().all(|query| chunk.ticks(query).is_some())
    }

    /// Notes that an instance of a recording that may run twice at once is about to be submitted; the first of
    /// several forgets former results.
    pub fn start_overlapping(&self) {
        let mut overlap = lock(&self.overlap);
        if overlap.outstanding == 0 {
            overlap.overlapped = false;
            for (chunk, used) in &self.chunks {
                chunk.clear(self.queries.next, 0..*used);
            }
        } else {
            overlap.overlapped = true;
        }
        overlap.outstanding += 1;
    }

    /// Notes that an execution that is not recorded is about to be submitted. If the recording may run twice at once,
    /// nobody sees the end of this execution, so the times inside are not known from here on.
    pub fn start_unrecorded(&self, simultaneous: bool) {
        if simultaneous {
            let mut overlap = lock(&self.overlap);
            overlap.outstanding += 1;
            overlap.overlapped = true;
        } else {
            self.unrecorded.store(true, Relaxed);
            for child in &self.children {
                child.start_unrecorded(false);
            }
        }
    }

    /// Notes that an instance has finished or was not submitted, and hands out its ticks as [`Self::collect`] does.
    /// Returns false when another instance was pending with it, so that the ticks are not its own.
    pub fn end_overlapping(
        &self,
        scratch: &mut Vec<u64>,
        deliver: &mut impl FnMut(ids::CommandRecording, u32, &[u64]),
    ) -> bool {
        let mut overlap = lock(&self.overlap);
        overlap.outstanding = overlap.outstanding.saturating_sub(1);
        let own = !overlap.overlapped && self.has_arrived();
        if own {
            self.collect(scratch, deliver);
        }
        own
    }

    /// Returns the number of queries of the recording and of its secondaries.
    pub fn query_count(&self) -> u32 {
        let own: u32 = self.chunks.iter().map(|(_, used)| used).sum();
        self.children
            .iter()
            .fold(own, |sum, child| sum + child.query_count())
    }

    /// Hands out all ticks chunk by chunk, each with the id of the recording and the index of its first query
    /// (`NO_TICKS` where one has not arrived), and forgets them. The secondaries' follow. `scratch` is reused memory
    /// without meaning between calls.
    pub fn collect(
        &self,
        scratch: &mut Vec<u64>,
        deliver: &mut impl FnMut(ids::CommandRecording, u32, &[u64]),
    ) {
        if self.partial {
            return;
        }
        let mut first = 0;
        for (chunk, used) in &self.chunks {
            scratch.clear();
            scratch.extend((0..*used).map(|query| chunk.ticks(query).unwrap_or(NO_TICKS)));
            deliver(self.recording, first, scratch);
            chunk.clear(self.queries.next, 0..*used);
            first += chunk.count;
        }
        for child in &self.children {
            child.collect(scratch, deliver);
        }
    }

    /// Prepares the queries of the recording and of its secondaries for an execution: forgets results of no instance,
    /// and resets what has been written.
    ///
    /// # Safety
    /// No instance of the recording is pending.
    pub unsafe fn prepare(&self) {
        if self.unrecorded.swap(false, Relaxed) {
            for (chunk, used) in &self.chunks {
                chunk.clear(self.queries.next, 0..*used);
            }
        }
        if self.written.swap(true, Relaxed) && self.delivery == Delivery::Asked {
            for (chunk, _) in &self.chunks {
                // SAFETY: as the caller promises; `Asked` is chosen only with the feature enabled.
                unsafe { chunk.reset_by_host(self.queries.next) };
            }
        }
        if let Some(counting) = &self.counting {
            // SAFETY: as the caller promises.
            unsafe { counting.prepare() };
        }
        for child in &self.children {
            // SAFETY: a pending child would make the recording pending.
            unsafe { child.prepare() };
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let written = *self.written.get_mut();
        for (mut chunk, _) in self.chunks.drain(..) {
            chunk.reset &= !written;
            self.queries.give_back(chunk);
        }
    }
}
