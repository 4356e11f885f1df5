//! From CUPTI's records to events. Nothing here runs on a thread of the program, but in a flush that the program asks for.

mod host;
mod kernels;
mod memory;
mod objects;
mod routes;
mod work;

use crate::callbacks::told::{self, TOLD};
use crate::cupti::Cupti;
use crate::cupti::fields::{Field, Record};
use crate::cupti::numbers::{self, kind};
use crate::generation::PerProcess;
use crate::recorder::Recorder;
use gapscope_spool::event::{CudaEvent, LossKind, Packer, Span};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use kernels::Kernels;
use memory::Memory;
use objects::Objects;
use routes::Routes;
use std::sync::{Mutex, PoisonError};

/// A batch is written at least when it has so many bytes; a tick writes what there is.
const BATCH_BYTES: usize = 32 << 10;

const NO_TIMES: &str = "CUPTI delivered none";

/// Everything that turns records into events, with what has been defined already.
struct Reader {
    recorder: &'static Recorder,
    packer: Packer,
    /// Activities in the batches that have been written.
    written: u64,
    objects: Objects,
    kernels: Kernels,
    routes: Routes,
    memory: Memory,
    /// Facts of contexts that are not known yet.
    unplaced: Vec<told::Told>,
    losses: Losses,
}

/// What is lost, until the next batch.
#[derive(Debug, Default)]
struct Losses(Vec<(LossKind, &'static str, u64)>);

impl Losses {
    fn add(&mut self, kind: LossKind, reason: &'static str) {
        self.add_many(kind, 1, reason);
    }

    fn add_many(&mut self, kind: LossKind, more: u64, reason: &'static str) {
        match self
            .0
            .iter_mut()
            .find(|(k, r, _)| *k == kind && *r == reason)
        {
            Some((_, _, count)) => *count += more,
            None if more > 0 => self.0.push((kind, reason, more)),
            None => {}
        }
    }
}

static READER: PerProcess<Mutex<Reader>> = PerProcess::new();

/// Reads the records of a buffer.
///
/// # Safety
/// CUPTI says that `bytes` bytes at `buffer` hold its records.
pub unsafe fn read(recorder: &'static Recorder, cupti: &Cupti, buffer: *mut u8, bytes: usize) {
    let reader = READER.get(|| Mutex::new(Reader::new(recorder)));
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    reader.kernels.new_buffer();
    let mut at = std::ptr::null_mut();
    loop {
        // SAFETY: as the caller promises; CUPTI goes from record to record.
        let code = unsafe { cupti.next_record(buffer, bytes, &mut at) };
        if code != 0 || at.is_null() {
            if code != 0 && code != numbers::code::MAX_LIMIT_REACHED {
                reader.losses.add(
                    LossKind::CudaActivities,
                    "a buffer of CUPTI ends in a record that it does not know itself",
                );
            }
            break;
        }
        let reader = &mut *reader;
        // SAFETY: CUPTI says that a record is here, written by this version of it.
        let record = unsafe { Record::new(at) };
        // A panic at one record must not lose the others.
        if guard(|| reader.record(&record)).is_none() {
            reader.losses.add(
                LossKind::CudaActivities,
                "internal error of the CUDA library",
            );
        }
        if reader.packer.is_full() {
            reader.write();
        }
    }
    // Otherwise later, when the records of new contexts have come.
    if TOLD.is_filling() {
        reader.told(false);
    }
}

/// Writes what has been read and told.
pub fn write_out() {
    if let Some(reader) = READER.existing() {
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.told(false);
        reader.write();
    }
}

/// The program named a stream.
pub fn name_stream(recorder: &'static Recorder, context: u32, stream: u32, name: &str) {
    let reader = READER.get(|| Mutex::new(Reader::new(recorder)));
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    reader.objects.name(context, stream, name, recorder);
}

/// Writes what has been read, and how much it was in all.
pub fn close(recorder: &'static Recorder) {
    let reader = READER.get(|| Mutex::new(Reader::new(recorder)));
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    reader.told(true);
    reader.write();
    reader.objects.close(recorder);
    recorder.write(&CudaEvent::Activities {
        first: reader.written,
        count: 0,
        bytes: &[],
    });
}

/// The times of work on a device. It takes time, so an end that is not behind the begin is none.
fn work_span(start: u64, end: u64) -> Option<Span> {
    span(start, end).filter(|span| span.duration_ns > 0)
}

/// A time that CUPTI knows: it says 0 where it does not.
fn known_time(ns: u64) -> Option<i64> {
    i64::try_from(ns).ok().filter(|ns| *ns > 0)
}

/// The times of something on the host, which may be shorter than the clock can tell.
fn span(start: u64, end: u64) -> Option<Span> {
    let start_ns = known_time(start)?;
    let duration_ns = i64::try_from(end)
        .ok()?
        .checked_sub(start_ns)
        .filter(|d| *d >= 0)?;
    Some(Span {
        start_ns,
        duration_ns,
    })
}

impl Reader {
    fn new(recorder: &'static Recorder) -> Reader {
        Reader {
            recorder,
            packer: Packer::new(BATCH_BYTES),
            written: 0,
            objects: Objects::default(),
            kernels: Kernels::default(),
            routes: Routes::default(),
            memory: Memory::default(),
            unplaced: Vec::new(),
            losses: Losses::default(),
        }
    }

    fn write(&mut self) {
        let count = self.packer.count();
        if count > 0 {
            self.recorder.write(&CudaEvent::Activities {
                first: self.written,
                count,
                bytes: self.packer.bytes(),
            });
            self.written += u64::from(count);
            self.packer.clear();
        }
        for (kind, reason, count) in self.losses.0.drain(..) {
            self.recorder.loss(kind, count, reason);
        }
    }

    fn record(&mut self, record: &Record<'_>) {
        // SAFETY: each function reads the fields of the kind that it is called for.
        unsafe {
            match record.kind() {
                kind::CONCURRENT_KERNEL | kind::KERNEL => self.kernel(record),
                kind::MEMCPY => self.copy(record),
                kind::MEMCPY_PEER => self.peer_copy(record),
                kind::MEMSET => self.fill(record),
                kind::GRAPH_TRACE => self.graph(record),
                kind::OVERHEAD => self.overhead(record),
                kind::MEMORY2 => {
                    self.memory
                        .record(record, &mut self.objects, &mut self.losses, self.recorder)
                }
                kind::MEMORY_POOL => {
                    self.memory
                        .pool(record, &mut self.objects, &mut self.losses, self.recorder)
                }
                kind::DEVICE => self.objects.device_facts(record, self.recorder),
                kind::CONTEXT => self.objects.context(record),
                kind::STREAM => self.objects.stream(record, self.recorder),
                _ => self.losses.add(
                    LossKind::CudaActivities,
                    "a kind of record that was not asked for",
                ),
            }
        }
    }

    /// The queue of work on a device.
    ///
    /// # Safety
    /// The record has these fields.
    #[inline]
    unsafe fn queue(
        &mut self,
        record: &Record<'_>,
        [device, context, stream]: [Field<u32>; 3],
    ) -> ids::Queue {
        // SAFETY: as the caller promises.
        let [device, context, stream] =
            unsafe { [record.get(device), record.get(context), record.get(stream)] };
        self.objects.queue(device, context, stream, self.recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_unknown_and_never_zero() {
        assert_eq!(
            work_span(5, 9),
            Some(Span {
                start_ns: 5,
                duration_ns: 4
            })
        );
        for (start, end) in [
            (0, 0),
            (0, 9),
            (9, 0),
            (9, 9),
            (9, 5),
            (u64::MAX, u64::MAX),
            (5, u64::MAX),
        ] {
            assert_eq!(work_span(start, end), None, "{start}..{end}");
        }
        assert_eq!(
            span(9, 9),
            Some(Span {
                start_ns: 9,
                duration_ns: 0
            })
        );
        assert_eq!(span(9, 5), None);
    }
}
