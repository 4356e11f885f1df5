//! A ring buffer of fixed size, without locks: the program's threads put operations in (waits, records of events,
//! and submissions of which CUPTI reports no work), and the reader of records takes them out. Operations that do not
//! fit are counted.

use crate::streams::StreamId;
use gapscope_spool::event::{Span, WaitKind};
use gapscope_spool::ids;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The most operations that wait to be read, which happens every 100 ms and whenever CUPTI hands over a buffer.
const MAX_OPERATIONS: usize = 1 << 16;
/// The 64-bit words of an operation: kind and correlation, stream, event, start and length.
const WORDS: usize = 5;

/// The operations of this process.
pub static OPERATIONS: Ring = Ring::new();

/// A wait, a record of an event, or a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub kind: OperationKind,
    pub correlation: ids::Correlation,
    pub stream: StreamId,
    /// The record of an event that was made or waited for; none for submissions.
    pub event: Occurrence,
}

/// The effect of a call on events and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// The call recorded an event on a stream.
    Record,
    /// The host waited at this time, or a stream waits.
    Wait(WaitKind, Option<Span>),
    /// The call put something on a stream that leaves no device record.
    Submission,
    /// The call launched a graph on a stream, whose bodies may be all that leaves records.
    GraphLaunch,
}

/// The numbers of kinds; those from [`FIRST_WAIT`] on are kinds of waits.
const RECORD: u32 = 0;
const SUBMISSION: u32 = 1;
const GRAPH_LAUNCH: u32 = 2;
const FIRST_WAIT: u32 = 3;

/// A record of an event. `number` counts the event's records from 1; 0 means none, or not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occurrence {
    /// The id of the event in this process.
    pub event: ids::CudaEvent,
    pub number: u32,
}

/// The ring of operations on their way from the program's threads to the reader of records.
pub struct Ring {
    slots: [Slot; MAX_OPERATIONS],
    /// The count of operations that were put.
    put: AtomicU64,
    /// The count of operations that were taken.
    taken: AtomicU64,
    /// The count of those that did not fit, since it was last asked for.
    lost: AtomicU32,
}

/// A slot of the ring, which holds at most one operation.
struct Slot {
    /// A round is one pass through all slots. 2 × n: free for round n. 2 × n + 1: holds the operation of round n.
    turn: AtomicU64,
    /// The operation in packed form.
    words: [AtomicU64; WORDS],
}

impl Ring {
    const fn new() -> Ring {
        Ring {
            slots: [const {
                Slot {
                    turn: AtomicU64::new(0),
                    words: [const { AtomicU64::new(0) }; WORDS],
                }
            }; MAX_OPERATIONS],
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU32::new(0),
        }
    }

    /// Puts an operation into the ring, from any thread. Without room it counts the operation and returns false.
    pub fn put(&self, operation: &Operation) -> bool {
        let mut at = self.put.load(Relaxed);
        loop {
            let (slot, round) = self.slot(at);
            let turn = slot.turn.load(Acquire);
            if turn == 2 * round {
                match self.put.compare_exchange_weak(at, at + 1, AcqRel, Relaxed) {
                    Ok(_) => {
                        for (word, value) in slot.words.iter().zip(operation.words()) {
                            word.store(value, Relaxed);
                        }
                        slot.turn.store(2 * round + 1, Release);
                        return true;
                    }
                    Err(now) => at = now,
                }
            } else if turn < 2 * round {
                // The operation of the previous round has not been taken.
                self.lost.fetch_add(1, Relaxed);
                return false;
            } else {
                at = self.put.load(Relaxed);
            }
        }
    }

    /// Takes the oldest operation. Only the reader calls this, under its lock.
    pub fn take(&self) -> Option<Operation> {
        let at = self.taken.load(Relaxed);
        let (slot, round) = self.slot(at);
        if slot.turn.load(Acquire) != 2 * round + 1 {
            return None;
        }
        let words = [0, 1, 2, 3, 4].map(|word: usize| slot.words[word].load(Relaxed));
        slot.turn.store(2 * (round + 1), Release);
        self.taken.store(at + 1, Relaxed);
        Some(Operation::from_words(words))
    }

    /// Returns whether the ring is so full that it should be read soon.
    pub fn is_filling(&self) -> bool {
        let waiting = self
            .put
            .load(Relaxed)
            .saturating_sub(self.taken.load(Relaxed));
        waiting > MAX_OPERATIONS as u64 / 2
    }

    /// Returns the number of operations that did not fit since the last call.
    pub fn take_lost(&self) -> u32 {
        match self.lost.load(Relaxed) {
            0 => 0,
            _ => self.lost.swap(0, Relaxed),
        }
    }

    /// Returns the slot of the operation number `at`, and how often the ring was filled before.
    fn slot(&self, at: u64) -> (&Slot, u64) {
        let slots = MAX_OPERATIONS as u64;
        (&self.slots[(at % slots) as usize], at / slots)
    }
}

/// The start of a span that is absent.
const NEVER: u64 = i64::MIN as u64;

impl Operation {
    fn words(&self) -> [u64; WORDS] {
        let (kind, span) = match self.kind {
            OperationKind::Record => (RECORD, None),
            OperationKind::Submission => (SUBMISSION, None),
            OperationKind::GraphLaunch => (GRAPH_LAUNCH, None),
            OperationKind::Wait(kind, span) => (FIRST_WAIT + kind as u32, span),
        };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(kind, self.correlation.0),
            pair(self.stream.context, self.stream.stream),
            pair(self.event.event.0, self.event.number),
            span.map_or(NEVER, |span| span.start_ns as u64),
            span.map_or(0, |span| span.duration_ns as u64),
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Operation {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let [kind, stream, event, start, duration] = words;
        let span = (start != NEVER).then_some(Span {
            start_ns: start as i64,
            duration_ns: duration as i64,
        });
        Operation {
            kind: match low(kind) {
                RECORD => OperationKind::Record,
                SUBMISSION => OperationKind::Submission,
                GRAPH_LAUNCH => OperationKind::GraphLaunch,
                kind => OperationKind::Wait(WaitKind::from_number((kind - FIRST_WAIT) as u8), span),
            },
            correlation: ids::Correlation(high(kind)),
            stream: StreamId {
                context: low(stream),
                stream: high(stream),
            },
            event: Occurrence {
                event: ids::CudaEvent(low(event)),
                number: high(event),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> &'static Ring {
        // SAFETY: all fields are numbers, for which zero is a value. The ring is too large for a stack.
        Box::leak(unsafe { Box::<Ring>::new_zeroed().assume_init() })
    }

    fn record(correlation: u32) -> Operation {
        Operation {
            kind: OperationKind::Record,
            correlation: ids::Correlation(correlation),
            stream: StreamId::without_stream(1),
            event: Occurrence {
                event: ids::CudaEvent(u32::MAX),
                number: 7,
            },
        }
    }

    #[test]
    fn operations_come_out_as_they_went_in() {
        let ring = ring();
        let span = |start_ns| Span {
            start_ns,
            duration_ns: 5,
        };
        let waits = WaitKind::ALL.iter().map(|kind| Operation {
            kind: OperationKind::Wait(
                *kind,
                (*kind as u8).is_multiple_of(2).then(|| span(1 << 60)),
            ),
            ..record(u32::MAX)
        });
        let of_kind = |kind| Operation { kind, ..record(3) };
        let launches = [OperationKind::Submission, OperationKind::GraphLaunch].map(of_kind);
        let records = [record(1), record(2)];
        let all: Vec<Operation> = waits.chain(records).chain(launches).collect();
        for round in 0..3 {
            for operation in &all {
                assert!(ring.put(operation));
            }
            let out: Vec<Operation> = std::iter::from_fn(|| ring.take()).collect();
            assert_eq!(out, all, "{round}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_room_is_used_again() {
        let ring = ring();
        for round in 0..3 {
            for n in 0..MAX_OPERATIONS as u32 + 10 {
                assert_eq!(
                    ring.put(&record(n)),
                    (n as usize) < MAX_OPERATIONS,
                    "{round}"
                );
            }
            assert!(ring.is_filling());
            assert_eq!((ring.take_lost(), ring.take_lost()), (10, 0));
            let out = std::iter::from_fn(|| ring.take()).map(|operation| operation.correlation.0);
            assert!(out.eq(0..MAX_OPERATIONS as u32));
            assert!(!ring.is_filling());
        }
    }

    #[test]
    fn each_operation_of_many_threads_comes_once() {
        const THREADS: u32 = 4;
        const EACH: u32 = 100_000;
        let ring = ring();
        let mut latest = vec![0u32; THREADS as usize];
        let mut count = 0;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        let operation = |n| Operation {
                            stream: StreamId::without_stream(thread),
                            ..record(n)
                        };
                        (1..=EACH).filter(|n| ring.put(&operation(*n))).count() as u32
                    })
                })
                .collect();
            let mut take = || {
                while let Some(operation) = ring.take() {
                    let last = &mut latest[operation.stream.context as usize];
                    assert!(
                        operation.correlation.0 > *last,
                        "in the order of its thread"
                    );
                    *last = operation.correlation.0;
                    count += 1;
                }
            };
            while !threads.iter().all(|thread| thread.is_finished()) {
                take();
            }
            take();
            let put: u32 = threads
                .into_iter()
                .map(|t| t.join().expect("no panic"))
                .sum();
            assert_eq!(put + ring.take_lost(), THREADS * EACH);
            assert_eq!(count, put);
        });
    }
}
