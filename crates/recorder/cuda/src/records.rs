//! From CUPTI's records to events. Nothing here runs on a thread of the program, but in a flush that the program asks for.

mod functions;
mod kernels;
mod memory;
mod objects;
mod routes;

use crate::cupti::Cupti;
use crate::cupti::fields::{self, Field, Record};
use crate::cupti::numbers::{self, kind};
use crate::generation::PerProcess;
use crate::guard::guard;
use crate::recorder::Recorder;
use crate::tracing;
use functions::{Function, Functions};
use gapscope_spool::Event;
use gapscope_spool::event::{Activity, GraphNode, OverheadKind, Packer, Span, WaitKind};
use kernels::Kernels;
use memory::Memory;
use objects::Objects;
use routes::Routes;
use std::sync::{Mutex, PoisonError};

/// A batch is written at least when it has so many bytes; a tick writes what there is.
const BATCH_BYTES: usize = 32 << 10;

/// CUpti_ActivityObjectKind of a thread.
const OBJECT_THREAD: u32 = 2;

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
    functions: Functions,
    memory: Memory,
    losses: Losses,
}

/// What is lost, until the next batch.
#[derive(Debug, Default)]
struct Losses(Vec<(&'static str, &'static str, u64)>);

impl Losses {
    fn add(&mut self, what: &'static str, reason: &'static str) {
        match self
            .0
            .iter_mut()
            .find(|(w, r, _)| (*w, *r) == (what, reason))
        {
            Some((_, _, count)) => *count += 1,
            None => self.0.push((what, reason, 1)),
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
        let code = unsafe { (cupti.functions.next_record)(buffer, bytes, &mut at) };
        if code != 0 || at.is_null() {
            if code != 0 && code != numbers::code::MAX_LIMIT_REACHED {
                reader.losses.add(
                    "CUDA activities",
                    "a buffer of CUPTI ends in a record that it does not know itself",
                );
            }
            break;
        }
        // SAFETY: CUPTI says that a record is here, written by this version of it.
        let record = unsafe { Record::new(at, cupti.version) };
        let reader = &mut *reader;
        // A panic at one record must not lose the others.
        if guard(|| reader.record(cupti, &record)).is_none() {
            reader
                .losses
                .add("CUDA activities", "internal error of the CUDA library");
        }
        if reader.packer.is_full() {
            reader.write();
        }
    }
}

/// Writes what has been read.
pub fn write_out() {
    if let Some(reader) = READER.existing() {
        reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write();
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
    reader.write();
    reader.objects.close(recorder);
    recorder.write(&Event::Activities {
        first: reader.written,
        count: 0,
        bytes: &[],
    });
}

/// The times of work on a device. It takes time, so an end that is not behind the begin is none.
fn work_span(start: u64, end: u64) -> Option<Span> {
    span(start, end).filter(|span| span.duration_ns > 0)
}

/// The times of something on the host, which may be shorter than the clock can tell.
fn span(start: u64, end: u64) -> Option<Span> {
    let start_ns = i64::try_from(start).ok().filter(|t| *t > 0)?;
    let duration_ns = i64::try_from(end)
        .ok()?
        .checked_sub(start_ns)
        .filter(|d| *d >= 0)?;
    Some(Span {
        start_ns,
        duration_ns,
    })
}

fn node(graph: u32, node: u64) -> Option<GraphNode> {
    (graph != 0).then_some(GraphNode { graph, node })
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
            functions: Functions::default(),
            memory: Memory::default(),
            losses: Losses::default(),
        }
    }

    fn write(&mut self) {
        let count = self.packer.count();
        if count > 0 {
            self.recorder.write(&Event::Activities {
                first: self.written,
                count,
                bytes: self.packer.bytes(),
            });
            self.written += u64::from(count);
            self.packer.clear();
        }
        for (what, reason, count) in self.losses.0.drain(..) {
            self.recorder.loss(what, count, reason);
        }
    }

    fn record(&mut self, cupti: &Cupti, record: &Record<'_>) {
        // SAFETY: each function reads the fields of the kind that it is called for.
        unsafe {
            match record.kind() {
                kind::CONCURRENT_KERNEL | kind::KERNEL => self.kernel(record),
                kind::RUNTIME | kind::DRIVER => self.call(cupti, record),
                kind::MEMCPY => self.copy(record),
                kind::MEMCPY_PEER => self.peer_copy(record),
                kind::MEMSET => self.fill(record),
                kind::GRAPH_TRACE => self.graph(record),
                kind::SYNCHRONIZATION => self.wait(record),
                kind::CUDA_EVENT => self.event(record),
                kind::OVERHEAD => self.overhead(record),
                kind::MEMORY2 => {
                    self.memory
                        .record(record, &mut self.objects, &mut self.losses, self.recorder)
                }
                kind::MEMORY_POOL => self.memory.pool(record, &mut self.objects, self.recorder),
                kind::DEVICE => self.objects.device_facts(record, self.recorder),
                kind::CONTEXT => self.objects.context(record),
                kind::STREAM => self.objects.stream(record, self.recorder),
                _ => self
                    .losses
                    .add("CUDA activities", "a kind of record that was not asked for"),
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
    ) -> u32 {
        // SAFETY: as the caller promises.
        let [device, context, stream] =
            unsafe { [record.get(device), record.get(context), record.get(stream)] };
        self.objects.queue(device, context, stream, self.recorder)
    }

    /// # Safety
    /// It is a kernel's.
    #[inline]
    unsafe fn kernel(&mut self, record: &Record<'_>) {
        use fields::kernel::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            if self.kernels.is_full() {
                self.write();
                self.kernels.forget(self.recorder);
            }
            let launch = self.kernels.launch(record, queue, self.recorder);
            let span = work_span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("dispatch times", NO_TIMES);
            }
            self.packer.push(&Activity::Kernel {
                launch,
                span,
                correlation: record.get(CORRELATION),
                node: node(record.get(GRAPH), record.get(NODE)),
            });
        }
    }

    /// # Safety
    /// It is a call's.
    #[inline]
    unsafe fn call(&mut self, cupti: &Cupti, record: &Record<'_>) {
        use fields::call::*;
        // SAFETY: as the caller promises.
        unsafe {
            let thread = record.get(THREAD);
            let (domain, call) = (self.functions.domain_of(record.kind()), record.get(CALL));
            let name = || cupti.call_name(domain, call);
            let function = match self.functions.function(domain, call, self.recorder, name) {
                Function::Known(function) => function,
                Function::LeftOut => return,
                Function::Nameless => {
                    self.losses.add("host calls", "CUPTI has no name for them");
                    return;
                }
            };
            self.functions.thread(thread, self.recorder);
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("host call times", NO_TIMES);
            }
            self.packer.push(&Activity::Call {
                function,
                thread,
                span,
                correlation: record.get(CORRELATION),
                result: record.get(RESULT),
            });
        }
    }

    fn transfer(
        &mut self,
        route: u32,
        bytes: u64,
        times: (u64, u64),
        correlation: u32,
        node: Option<GraphNode>,
    ) {
        let span = work_span(times.0, times.1);
        if span.is_none() {
            self.losses.add("transfer times", NO_TIMES);
        }
        self.packer.push(&Activity::Transfer {
            route,
            bytes,
            span,
            correlation,
            node,
        });
    }

    /// # Safety
    /// It is a copy's.
    unsafe fn copy(&mut self, record: &Record<'_>) {
        use fields::copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let key = routes::Key::copy(
                queue,
                record.get(KIND),
                record.get(SOURCE),
                record.get(DESTINATION),
            );
            let route = self.routes.route(key, self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a copy's between devices.
    unsafe fn peer_copy(&mut self, record: &Record<'_>) {
        use fields::peer_copy::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let source = self
                .objects
                .device(record.get(SOURCE_DEVICE), self.recorder);
            let destination = self
                .objects
                .device(record.get(DESTINATION_DEVICE), self.recorder);
            let mut key = routes::Key::copy(
                queue,
                record.get(KIND),
                record.get(SOURCE),
                record.get(DESTINATION),
            );
            key.devices = Some((source, destination));
            let route = self.routes.route(key, self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a memset's.
    unsafe fn fill(&mut self, record: &Record<'_>) {
        use fields::fill::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            let route = self
                .routes
                .route(routes::Key::fill(queue, record.get(MEMORY)), self.recorder);
            let times = (record.get(START), record.get(END));
            let node = node(record.get(GRAPH), record.get(NODE));
            self.transfer(
                route,
                record.get(BYTES),
                times,
                record.get(CORRELATION),
                node,
            );
        }
    }

    /// # Safety
    /// It is a graph's.
    unsafe fn graph(&mut self, record: &Record<'_>) {
        use fields::graph::*;
        // SAFETY: as the caller promises.
        unsafe {
            let span = work_span(record.get(START), record.get(END));
            // This kind stays on while recording is off.
            if span.is_some_and(|span| !tracing::in_window(span.start_ns)) {
                return;
            }
            if span.is_none() {
                self.losses.add("graph times", NO_TIMES);
            }
            let queue = self.queue(record, [DEVICE, CONTEXT, STREAM]);
            self.packer.push(&Activity::GraphRun {
                graph: record.get(GRAPH),
                queue,
                span,
                correlation: record.get(CORRELATION),
            });
        }
    }

    /// # Safety
    /// It is a synchronisation's.
    unsafe fn wait(&mut self, record: &Record<'_>) {
        use fields::wait::*;
        // SAFETY: as the caller promises.
        unsafe {
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("wait times", NO_TIMES);
            }
            let queue =
                self.objects
                    .known_queue(record.get(CONTEXT), record.get(STREAM), self.recorder);
            let event = record.get(EVENT);
            let occurrence = record.get_new(OCCURRENCE).unwrap_or(0);
            self.packer.push(&Activity::Wait {
                kind: match record.get(KIND) {
                    1 => WaitKind::HostForEvent,
                    2 => WaitKind::QueueForEvent,
                    3 => WaitKind::HostForQueue,
                    4 => WaitKind::HostForContext,
                    _ => WaitKind::Unknown,
                },
                queue,
                event: if event == numbers::NO_ID { 0 } else { event },
                occurrence: if occurrence as u32 == numbers::NO_ID {
                    0
                } else {
                    occurrence
                },
                span,
                correlation: record.get(CORRELATION),
            });
        }
    }

    /// # Safety
    /// It is an event's.
    unsafe fn event(&mut self, record: &Record<'_>) {
        use fields::event::*;
        // SAFETY: as the caller promises.
        unsafe {
            let queue =
                self.objects
                    .known_queue(record.get(CONTEXT), record.get(STREAM), self.recorder);
            self.packer.push(&Activity::EventRecord {
                event: record.get(EVENT),
                occurrence: record.get_new(OCCURRENCE).unwrap_or(0),
                queue,
                correlation: record.get(CORRELATION),
            });
        }
    }

    /// # Safety
    /// It is an overhead's.
    unsafe fn overhead(&mut self, record: &Record<'_>) {
        use fields::overhead::*;
        // SAFETY: as the caller promises.
        unsafe {
            let thread = if record.get(OBJECT) == OBJECT_THREAD {
                // The process, then the thread.
                let [_, thread, _] = record.get(OBJECT_ID);
                thread
            } else {
                0
            };
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("overhead times", NO_TIMES);
            }
            self.packer.push(&Activity::Overhead {
                kind: overhead_kind(record.get(KIND)),
                thread,
                span,
                correlation: record.get_new(CORRELATION).unwrap_or(0),
            });
        }
    }
}

/// CUpti_ActivityOverheadKind
fn overhead_kind(number: u32) -> OverheadKind {
    match (number & 0xffff, number >> 16) {
        (1, 0) => OverheadKind::Compiler,
        (0, 1) => OverheadKind::BufferFlush,
        (0, 2) => OverheadKind::Instrumentation,
        (0, 3) => OverheadKind::Resource,
        (0, 4) => OverheadKind::ModuleLoading,
        (0, 5) => OverheadKind::FunctionLoading,
        (0, 6) => OverheadKind::CommandBufferFull,
        (0, 7) => OverheadKind::BufferRequest,
        (0, 8) => OverheadKind::UnifiedMemory,
        _ => OverheadKind::Unknown,
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
