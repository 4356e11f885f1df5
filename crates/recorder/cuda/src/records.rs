//! Turns CUPTI's records of work (kernels, copies, waits and more, which NVIDIA's library for tracing reports after
//! they happened) into events. Nothing here runs on a thread of the program, except in a flush that the program
//! asks for.

mod devices;
mod kernels;
mod losses;
mod memory;
mod operations;
mod overheads;
mod queues;
mod reader;
mod routes;
mod times;
mod work;

pub use devices::read_module_version;

use crate::cupti::Cupti;
use crate::cupti::fields::Record;
use crate::cupti::numbers::{self, kind};
use crate::per_process::PerProcess;
use crate::recorder::Recorder;
use crate::streams::StreamId;
use crate::wait_ring::OPERATIONS;
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::guard;
use reader::Reader;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The reader of this process, behind a lock, because CUPTI may hand over buffers on several threads.
static READER: PerProcess<Mutex<Reader>> = PerProcess::new();

fn reader(recorder: &'static Recorder) -> MutexGuard<'static, Reader> {
    let reader = READER.get(|| Mutex::new(Reader::new(recorder)));
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the records of a buffer that came at `at_ns`, and writes each batch of events that is full.
///
/// # Safety
/// CUPTI says that `bytes` bytes at `buffer` hold its records.
pub unsafe fn read(
    recorder: &'static Recorder,
    cupti: &Cupti,
    buffer: *mut u8,
    bytes: usize,
    at_ns: i64,
) {
    let mut reader = reader(recorder);
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
        reader.write_full();
    }
    reader.write_delivery(at_ns);
    // Otherwise operations are read later, when the records of new contexts have come.
    if OPERATIONS.is_filling() {
        reader.read_operations(false);
    }
}

/// Writes the records that have been read, and the operations (waits and the like) of the program's threads.
pub fn write_out() {
    if let Some(reader) = READER.existing() {
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.read_operations(false);
        reader.write();
    }
}

/// Passes on the program's name for a stream.
pub fn name_stream(recorder: &'static Recorder, stream: StreamId, name: &str) {
    reader(recorder).queues.name(stream, name, recorder);
}

/// Writes the records that are not written yet, and the total count.
pub fn close(recorder: &'static Recorder) {
    let mut reader = reader(recorder);
    reader.read_operations(true);
    reader.close();
}

impl Reader {
    /// Passes a record to the function for its kind.
    fn record(&mut self, record: &Record<'_>) {
        // SAFETY: each function reads the fields of the kind that it is called for.
        unsafe {
            match record.kind() {
                kind::CONCURRENT_KERNEL | kind::KERNEL => self.kernel(record),
                kind::MEMCPY => self.copy(record),
                kind::MEMCPY_PEER => self.peer_copy(record),
                kind::MEMSET => self.fill(record),
                kind::GRAPH_TRACE => self.graph(record),
                kind::HOST_LAUNCH => self.host_launch(record),
                kind::GRAPH_HOST_NODE => self.host_node(record),
                kind::OVERHEAD => self.overhead(record),
                kind::MEMORY2 => {
                    let devices = &mut self.queues.devices;
                    self.memory
                        .record(record, devices, &mut self.losses, self.recorder);
                }
                kind::MEMORY_POOL => {
                    let devices = &mut self.queues.devices;
                    self.memory
                        .pool(record, devices, &mut self.losses, self.recorder);
                }
                kind::DEVICE => self.queues.devices.describe(record, self.recorder),
                kind::CONTEXT => self.queues.describe_context(record),
                kind::STREAM => self.queues.describe_stream(record, self.recorder),
                _ => self.losses.add(
                    LossKind::CudaActivities,
                    "a kind of record that was not asked for",
                ),
            }
        }
    }
}
