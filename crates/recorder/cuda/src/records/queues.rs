//! Gives a CUDA stream its id as a queue, and writes the queue at the first work or operation on the stream.

use super::devices::Devices;
use crate::cupti::fields::{self, Record};
use crate::cupti::numbers::FIRST_WITH_GREEN_CONTEXTS;
use crate::recorder::Recorder;
use crate::streams::StreamId;
use crate::subscription;
use gapscope_spool::event::{CommonEvent, CudaEvent, Object, StreamKind};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;

/// VkQueueFlags of a stream: compute and transfer.
const COMPUTE_AND_TRANSFER: u32 = 2 | 4;

/// The contexts and streams of the process, and the ids of those streams that are queues in the trace.
#[derive(Debug, Default)]
pub struct Queues {
    pub devices: Devices,
    /// The contexts by CUPTI's number.
    contexts: FxHashMap<u32, Context>,
    /// The facts of streams that CUPTI has described.
    streams: FxHashMap<StreamId, Stream>,
    /// The streams that are queues in the trace, since work or an operation named them.
    queues: FxHashMap<StreamId, ids::Queue>,
    /// The program's names for streams.
    names: FxHashMap<StreamId, String>,
    /// The queue of the last record.
    last: Option<(StreamId, ids::Queue)>,
}

/// The facts of a context (a program's state on one GPU).
#[derive(Debug)]
struct Context {
    /// CUPTI's number of the device.
    device: u32,
    /// The default stream; `None` until the context's own record has come.
    default_stream: Option<u32>,
    /// Whether the context is green: CUDA's kind of context that has a part of the GPU.
    is_green: bool,
}

/// The facts of a stream.
#[derive(Debug, Clone, Copy)]
struct Stream {
    kind: StreamKind,
    priority: i32,
}

impl Queues {
    /// Keeps the facts that a record tells of a context.
    ///
    /// # Safety
    /// The record is a context's.
    pub unsafe fn describe_context(&mut self, record: &Record<'_>) {
        use fields::context::*;
        // SAFETY: as the caller promises.
        unsafe {
            let says_green = subscription::cupti()
                .is_some_and(|cupti| cupti.version >= FIRST_WITH_GREEN_CONTEXTS);
            let context = Context {
                device: record.get(DEVICE),
                default_stream: Some(u32::from(record.get(DEFAULT_STREAM))),
                is_green: says_green && record.get(IS_GREEN) != 0,
            };
            self.contexts.insert(record.get(ID), context);
        }
    }

    /// Keeps the facts that a record tells of a stream, and writes them if the stream is a queue already.
    ///
    /// # Safety
    /// The record is a stream's.
    pub unsafe fn describe_stream(&mut self, record: &Record<'_>, recorder: &Recorder) {
        use fields::stream::*;
        // SAFETY: as the caller promises.
        let (id, stream) = unsafe {
            let id = StreamId {
                context: record.get(CONTEXT),
                stream: record.get(ID),
            };
            // CUpti_ActivityStreamFlag
            let kind = match record.get(FLAG) {
                1 => StreamKind::Blocking,
                2 => StreamKind::NonBlocking,
                3 => StreamKind::Default,
                _ => StreamKind::Unknown,
            };
            let priority = record.get(PRIORITY) as i32;
            (id, Stream { kind, priority })
        };
        self.streams.insert(id, stream);
        if let Some(queue) = self.queues.get(&id) {
            stream.write(*queue, recorder);
        }
    }

    /// Returns the id of the queue that a stream is.
    #[inline]
    pub fn of_stream(&mut self, device: u32, stream: StreamId, recorder: &Recorder) -> ids::Queue {
        if let Some((last, queue)) = self.last
            && last == stream
        {
            return queue;
        }
        let queue = match self.queues.get(&stream) {
            Some(queue) => *queue,
            None => self.new_queue(device, stream, recorder),
        };
        self.last = Some((stream, queue));
        queue
    }

    /// Returns the id of the queue of a stream whose device is not named; none where the stream is not known.
    pub fn of_known_stream(&mut self, stream: StreamId, recorder: &Recorder) -> ids::Queue {
        if !stream.is_known() {
            return ids::Queue::NONE;
        }
        if let Some(queue) = self.queues.get(&stream) {
            return *queue;
        }
        match self.contexts.get(&stream.context) {
            Some(context) => self.of_stream(context.device, stream, recorder),
            None => ids::Queue::NONE,
        }
    }

    /// Returns the stream with this number and its device, if only one context has such a stream: numbers are unique
    /// in a context alone. The pair is CUPTI's number of the device, then the stream.
    pub fn only_stream(&self, number: u32) -> Option<(u32, StreamId)> {
        let default = |(id, context): (&u32, &Context)| {
            let stream = context.default_stream?;
            let context = *id;
            Some(StreamId { context, stream })
        };
        let defaults = self.contexts.iter().filter_map(default);
        let known = self.streams.keys().chain(self.queues.keys()).copied();
        let mut with_number = known.chain(defaults).filter(|id| id.stream == number);
        let first = with_number.next()?;
        let is_only = with_number.all(|other| other == first);
        let context = self.contexts.get(&first.context).filter(|_| is_only)?;
        Some((context.device, first))
    }

    /// Returns whether this context's device is known.
    pub fn knows_context(&self, context: u32) -> bool {
        self.contexts.contains_key(&context)
    }

    /// Returns the id of any queue of a context; none where the context has no queue so far.
    pub fn any_of_context(&self, context: u32) -> ids::Queue {
        let queues = self.queues.iter().filter(|(id, _)| id.context == context);
        queues.map(|(_, queue)| *queue).min().unwrap_or_default()
    }

    /// Keeps the program's name for a stream, which may not be in use yet.
    pub fn name(&mut self, stream: StreamId, name: &str, recorder: &Recorder) {
        if let Some(queue) = self.queues.get(&stream) {
            write_name(*queue, name, recorder);
        }
        self.names.insert(stream, name.to_owned());
    }

    /// Makes a stream a queue: writes it, and its facts and name where they are known.
    #[cold]
    fn new_queue(&mut self, device: u32, stream: StreamId, recorder: &Recorder) -> ids::Queue {
        let context = self.contexts.entry(stream.context).or_insert(Context {
            device,
            default_stream: None,
            is_green: false,
        });
        // CUPTI has no record of default streams, nor of those of green contexts, which can only be of one kind.
        let implied = match context {
            Context { default_stream, .. } if *default_stream == Some(stream.stream) => {
                Some(StreamKind::Default)
            }
            Context { is_green: true, .. } => Some(StreamKind::NonBlocking),
            _ => None,
        };
        let queue = ids::Queue(self.queues.len() as u32 + 1);
        self.queues.insert(stream, queue);
        recorder.write(&CommonEvent::Queue {
            queue,
            device: self.devices.id(device, recorder),
            family: stream.context,
            index: stream.stream,
            flags: COMPUTE_AND_TRANSFER,
            timestamp_bits: 64,
        });
        let implied = implied.map(|kind| Stream { kind, priority: 0 });
        if let Some(known) = self.streams.get(&stream).copied().or(implied) {
            known.write(queue, recorder);
        }
        if let Some(name) = self.names.get(&stream) {
            write_name(queue, name, recorder);
        }
        queue
    }
}

impl Stream {
    fn write(self, queue: ids::Queue, recorder: &Recorder) {
        recorder.write(&CudaEvent::Stream {
            queue,
            kind: self.kind,
            priority: self.priority,
        });
    }
}

fn write_name(queue: ids::Queue, name: &str, recorder: &Recorder) {
    recorder.write(&CommonEvent::Name {
        object: Object::Queue(queue),
        name,
    });
}
