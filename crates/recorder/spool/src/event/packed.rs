//! Packs [`Activity`] entries into bytes, about 7 for a kernel, and unpacks them again. The hook (gapscope's library
//! in the program) packs a batch; the session (the process that writes the trace) unpacks it.
//!
//! Each entry is a tag (3 bits of kind, 5 of flags) and LEB128 numbers. Times and correlations (numbers that join
//! work to its call) are stored as differences from the last entry of the same kind in the same batch, so that each
//! batch can be read on its own.

use super::{Activity, OverheadKind, Span, WaitKind};
use crate::ids;

/// The kinds of entries, as tags hold them; each is a variant of [`Activity`].
const KERNEL: u8 = 0;
const TRANSFER: u8 = 1;
const GRAPH_RUN: u8 = 2;
const WAIT: u8 = 3;
const EVENT_RECORD: u8 = 4;
const OVERHEAD: u8 = 5;
const SUBMISSION: u8 = 6;
const HOST_FUNCTION: u8 = 7;
const KINDS: usize = 8;

/// Flag: the times are unknown.
const NO_SPAN: u8 = 0x08;
/// Flag: the correlation advances by the same step as in the last entry.
const STEADY: u8 = 0x10;
/// The flag of kernels and transfers: the entry is a node of a graph; the graph's number and the node's place follow the times.
const OF_GRAPH: u8 = 0x20;
/// Flag: the launch (kernel), route (transfer), thread (overhead) or queue (other kinds) is that of the last entry.
const SAME: u8 = 0x40;
/// The bytes of the longest entry: a tag, seven numbers of at most 10 bytes and a byte.
const MAX_ENTRY_BYTES: usize = 72;

/// The numbers of the last entry of one kind, from which the next entry stores differences.
#[derive(Debug, Clone, Copy, Default)]
struct LastEntry {
    /// The end of its times. Before the first entry of a kind, all these numbers are 0.
    end_ns: i64,
    /// Its correlation, and how far that was from the one before.
    correlation: u32,
    step: u32,
    /// The id of its launch (kernel), route (transfer), thread (overhead) or queue (other kinds).
    key: u32,
}

/// Packs activities into a batch.
#[derive(Debug)]
pub struct Packer {
    bytes: Vec<u8>,
    capacity: usize,
    count: u32,
    /// The last entry of each kind in the batch.
    last: [LastEntry; KINDS],
}

impl Packer {
    /// Creates a packer of batches of at most `capacity` bytes. It allocates here and never again.
    pub fn new(capacity: usize) -> Packer {
        let capacity = capacity.max(MAX_ENTRY_BYTES);
        Packer {
            bytes: Vec::with_capacity(capacity),
            capacity,
            count: 0,
            last: Default::default(),
        }
    }

    /// Returns true when another entry might not fit: take the batch with [`Self::bytes`], then call [`Self::clear`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() + MAX_ENTRY_BYTES > self.capacity
    }

    /// Returns the number of entries in the batch.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the bytes of the batch so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts a new batch.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.last = Default::default();
    }

    /// Appends an entry. A batch that is already full grows past its capacity.
    #[inline]
    pub fn push(&mut self, activity: &Activity) {
        self.count += 1;
        match *activity {
            Activity::Kernel {
                launch,
                span,
                correlation,
                node,
            } => {
                let mut entry = self.entry(KERNEL, launch.0, span, correlation);
                entry.flag(OF_GRAPH, node.some().is_some());
                entry.head_with_key();
                entry.node(node);
            }
            Activity::Transfer {
                route,
                bytes,
                span,
                correlation,
                node,
            } => {
                let mut entry = self.entry(TRANSFER, route.0, span, correlation);
                entry.flag(OF_GRAPH, node.some().is_some());
                entry.head_with_key();
                entry.node(node);
                entry.number(bytes);
            }
            Activity::GraphRun {
                queue,
                span,
                correlation,
            } => {
                let mut entry = self.entry(GRAPH_RUN, queue.0, span, correlation);
                entry.head_with_key();
            }
            Activity::Wait {
                kind,
                queue,
                event,
                occurrence,
                span,
                correlation,
            } => {
                let mut entry = self.entry(WAIT, queue.0, span, correlation);
                entry.head_with_key();
                entry.byte(kind as u8);
                entry.number(u64::from(event.0));
                entry.number(occurrence);
            }
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            } => {
                let mut entry = self.entry(EVENT_RECORD, queue.0, None, correlation);
                entry.head_with_key();
                entry.number(u64::from(event.0));
                entry.number(occurrence);
            }
            Activity::Overhead { kind, thread, span } => {
                let mut entry = self.entry(OVERHEAD, thread.0, span, ids::Correlation::NONE);
                entry.head_with_key();
                entry.byte(kind as u8);
            }
            Activity::Submission { queue, correlation } => {
                let mut entry = self.entry(SUBMISSION, queue.0, None, correlation);
                entry.head_with_key();
            }
            Activity::HostFunction {
                queue,
                thread,
                span,
                correlation,
            } => {
                let mut entry = self.entry(HOST_FUNCTION, queue.0, span, correlation);
                entry.head_with_key();
                entry.number(u64::from(thread.0));
            }
        }
    }

    /// Begins an entry of a kind; nothing is written yet.
    #[inline]
    fn entry(
        &mut self,
        kind: u8,
        key: u32,
        span: Option<Span>,
        correlation: ids::Correlation,
    ) -> Entry<'_> {
        Entry {
            bytes: &mut self.bytes,
            last: &mut self.last[usize::from(kind)],
            tag: kind,
            key,
            span,
            correlation: correlation.0,
        }
    }
}

/// An entry that is being packed.
struct Entry<'a> {
    bytes: &'a mut Vec<u8>,
    last: &'a mut LastEntry,
    tag: u8,
    key: u32,
    span: Option<Span>,
    correlation: u32,
}

impl Entry<'_> {
    #[inline]
    fn flag(&mut self, flag: u8, set: bool) {
        if set {
            self.tag |= flag;
        }
    }

    /// Writes tag, key, correlation and times, which every kind has, and makes this entry the last of its kind.
    #[inline]
    fn head_with_key(&mut self) {
        let step = self.correlation.wrapping_sub(self.last.correlation);
        self.flag(SAME, self.key == self.last.key);
        self.flag(STEADY, step == self.last.step);
        self.flag(NO_SPAN, self.span.is_none());
        self.byte(self.tag);
        if self.tag & SAME == 0 {
            self.number(u64::from(self.key));
        }
        if self.tag & STEADY == 0 {
            self.number(zigzag(i64::from(step as i32)));
        }
        if let Some(span) = self.span {
            self.number(zigzag(span.start_ns.wrapping_sub(self.last.end_ns)));
            self.number(span.duration_ns as u64);
            self.last.end_ns = span.start_ns.wrapping_add(span.duration_ns);
        }
        self.last.key = self.key;
        self.last.step = step;
        self.last.correlation = self.correlation;
    }

    /// Writes the graph of a node and its place there, which the flag [`OF_GRAPH`] announces.
    #[inline]
    fn node(&mut self, node: ids::GraphNode) {
        if let Some(node) = node.some() {
            self.number(u64::from(node.graph().0));
            self.number(u64::from(node.place()));
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes a number in LEB128: 7 bits a byte, the low ones first, with the high bit set in all but the last.
    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// Maps numbers of either sign to unsigned ones that are small when they are near 0.
#[inline]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[inline]
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A batch whose bytes are damaged from some entry on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the activities are damaged at byte {at} of {bytes}")]
pub struct Torn {
    /// The start of the damaged entry.
    pub at: usize,
    /// The size of the batch.
    pub bytes: usize,
}

/// Decodes the entries that a [`Packer`] wrote. The iterator ends after damage.
pub fn unpack(bytes: &[u8]) -> impl Iterator<Item = Result<Activity, Torn>> + '_ {
    let mut reader = Reader {
        bytes,
        at: 0,
        last: Default::default(),
    };
    std::iter::from_fn(move || {
        let at = reader.at;
        if at >= bytes.len() {
            return None;
        }
        let activity = reader.next();
        if activity.is_none() {
            reader.at = bytes.len();
        }
        Some(activity.ok_or(Torn {
            at,
            bytes: bytes.len(),
        }))
    })
}

/// The position in a batch that is being unpacked.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    last: [LastEntry; KINDS],
}

impl Reader<'_> {
    /// Decodes the next entry; `None` when it is damaged.
    fn next(&mut self) -> Option<Activity> {
        let tag = self.byte()?;
        let kind = tag & 0x07;
        let mut last = *self.last.get(usize::from(kind))?;
        if tag & SAME == 0 {
            last.key = self.small()?;
        }
        if tag & STEADY == 0 {
            last.step = unzigzag(self.number()?) as u32;
        }
        last.correlation = last.correlation.wrapping_add(last.step);
        let span = if tag & NO_SPAN == 0 {
            let start_ns = last.end_ns.wrapping_add(unzigzag(self.number()?));
            let duration_ns = i64::try_from(self.number()?).ok()?;
            last.end_ns = start_ns.wrapping_add(duration_ns);
            Some(Span {
                start_ns,
                duration_ns,
            })
        } else {
            None
        };
        let (key, correlation) = (last.key, ids::Correlation(last.correlation));
        let node = match (tag & OF_GRAPH != 0, kind) {
            (true, KERNEL | TRANSFER) => {
                ids::GraphNode::new(ids::Graph(self.small()?), self.small()?)
            }
            _ => ids::GraphNode::NONE,
        };
        let activity = match kind {
            KERNEL => Activity::Kernel {
                launch: ids::Launch(key),
                span,
                correlation,
                node,
            },
            TRANSFER => Activity::Transfer {
                route: ids::Route(key),
                bytes: self.number()?,
                span,
                correlation,
                node,
            },
            GRAPH_RUN => Activity::GraphRun {
                queue: ids::Queue(key),
                span,
                correlation,
            },
            WAIT => Activity::Wait {
                kind: WaitKind::from_number(self.byte()?),
                queue: ids::Queue(key),
                event: ids::CudaEvent(self.small()?),
                occurrence: self.number()?,
                span,
                correlation,
            },
            EVENT_RECORD => Activity::EventRecord {
                event: ids::CudaEvent(self.small()?),
                occurrence: self.number()?,
                queue: ids::Queue(key),
                correlation,
            },
            OVERHEAD => Activity::Overhead {
                kind: OverheadKind::from_number(self.byte()?),
                thread: ids::Thread(key),
                span,
            },
            SUBMISSION => Activity::Submission {
                queue: ids::Queue(key),
                correlation,
            },
            HOST_FUNCTION => Activity::HostFunction {
                queue: ids::Queue(key),
                thread: ids::Thread(self.small()?),
                span,
                correlation,
            },
            _ => return None,
        };
        self.last[usize::from(kind)] = last;
        Some(activity)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}
