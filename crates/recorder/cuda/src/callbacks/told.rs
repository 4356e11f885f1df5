//! The way of facts from the program's threads to the reader of records: a ring of fixed size, without locks. What does
//! not fit is counted.

use gapscope_spool::event::{Span, WaitKind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Facts that wait to be read. They are read every 100 ms, and whenever CUPTI hands over a buffer.
const MOST: usize = 1 << 16;
const WORDS: usize = 5;

/// The facts of this process.
pub static TOLD: Ring = Ring::new();

/// Something that the program did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub fact: Fact,
    pub correlation: u32,
    /// CUPTI's numbers; the stream's is [`crate::cupti::numbers::NO_ID`] where there is none or it is not known.
    pub context: u32,
    pub stream: u32,
    /// The event and its record, from 1; 0: none, or not known.
    pub event: (u32, u32),
}

/// What it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// It put an event on a stream.
    Record,
    /// The host waited then, or a stream waits.
    Wait(WaitKind, Option<Span>),
}

pub struct Ring {
    places: [Place; MOST],
    /// Facts that were put, and that were taken.
    put: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU32,
}

struct Place {
    /// 2 × n: free for round n. 2 × n + 1: it holds the fact of round n.
    turn: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Ring {
    const fn new() -> Ring {
        Ring {
            places: [const {
                Place {
                    turn: AtomicU64::new(0),
                    words: [const { AtomicU64::new(0) }; WORDS],
                }
            }; MOST],
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU32::new(0),
        }
    }

    /// From any thread. False: there is no room, and it is counted.
    pub fn put(&self, told: &Told) -> bool {
        let mut at = self.put.load(Relaxed);
        loop {
            let (place, round) = self.place(at);
            let turn = place.turn.load(Acquire);
            if turn == 2 * round {
                match self.put.compare_exchange_weak(at, at + 1, AcqRel, Relaxed) {
                    Ok(_) => {
                        for (word, value) in place.words.iter().zip(told.words()) {
                            word.store(value, Relaxed);
                        }
                        place.turn.store(2 * round + 1, Release);
                        return true;
                    }
                    Err(now) => at = now,
                }
            } else if turn < 2 * round {
                // The fact of the round before has not been taken.
                self.lost.fetch_add(1, Relaxed);
                return false;
            } else {
                at = self.put.load(Relaxed);
            }
        }
    }

    /// The oldest fact. The reader's only, under its lock.
    pub fn take(&self) -> Option<Told> {
        let at = self.taken.load(Relaxed);
        let (place, round) = self.place(at);
        if place.turn.load(Acquire) != 2 * round + 1 {
            return None;
        }
        let told = Told::of([0, 1, 2, 3, 4].map(|word: usize| place.words[word].load(Relaxed)));
        place.turn.store(2 * (round + 1), Release);
        self.taken.store(at + 1, Relaxed);
        Some(told)
    }

    /// Whether so much waits that it should be read soon.
    pub fn is_filling(&self) -> bool {
        let waiting = self
            .put
            .load(Relaxed)
            .saturating_sub(self.taken.load(Relaxed));
        waiting > MOST as u64 / 2
    }

    /// What did not fit since this was asked last.
    pub fn take_lost(&self) -> u32 {
        match self.lost.load(Relaxed) {
            0 => 0,
            _ => self.lost.swap(0, Relaxed),
        }
    }

    fn place(&self, at: u64) -> (&Place, u64) {
        let most = MOST as u64;
        (&self.places[(at % most) as usize], at / most)
    }
}

/// Times of which there are none.
const NEVER: u64 = i64::MIN as u64;

impl Told {
    fn words(&self) -> [u64; WORDS] {
        let (fact, span) = match self.fact {
            Fact::Record => (0, None),
            Fact::Wait(kind, span) => (1 + kind as u32, span),
        };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(fact, self.correlation),
            pair(self.context, self.stream),
            pair(self.event.0, self.event.1),
            span.map_or(NEVER, |span| span.start_ns as u64),
            span.map_or(0, |span| span.duration_ns as u64),
        ]
    }

    fn of(words: [u64; WORDS]) -> Told {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let [fact, place, event, start, duration] = words;
        let span = (start != NEVER).then_some(Span {
            start_ns: start as i64,
            duration_ns: duration as i64,
        });
        Told {
            fact: match low(fact) {
                0 => Fact::Record,
                kind => Fact::Wait(WaitKind::from_number((kind - 1) as u8), span),
            },
            correlation: high(fact),
            context: low(place),
            stream: high(place),
            event: (low(event), high(event)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> &'static Ring {
        // Too large for a stack.
        // SAFETY: numbers, for which zero is a value.
        Box::leak(unsafe { Box::<Ring>::new_zeroed().assume_init() })
    }

    fn fact(correlation: u32) -> Told {
        Told {
            fact: Fact::Record,
            correlation,
            context: 1,
            stream: u32::MAX,
            event: (u32::MAX, 7),
        }
    }

    #[test]
    fn facts_come_out_as_they_went_in() {
        let ring = ring();
        let span = |start_ns| Span {
            start_ns,
            duration_ns: 5,
        };
        let waits = WaitKind::ALL.iter().map(|kind| Told {
            fact: Fact::Wait(
                *kind,
                (*kind as u8).is_multiple_of(2).then(|| span(1 << 60)),
            ),
            ..fact(u32::MAX)
        });
        let all: Vec<Told> = waits.chain([fact(1), fact(2)]).collect();
        for round in 0..3 {
            for told in &all {
                assert!(ring.put(told));
            }
            let out: Vec<Told> = std::iter::from_fn(|| ring.take()).collect();
            assert_eq!(out, all, "{round}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_room_is_used_again() {
        let ring = ring();
        for round in 0..3 {
            for n in 0..MOST as u32 + 10 {
                assert_eq!(ring.put(&fact(n)), (n as usize) < MOST, "{round}");
            }
            assert!(ring.is_filling());
            assert_eq!((ring.take_lost(), ring.take_lost()), (10, 0));
            let out = std::iter::from_fn(|| ring.take()).map(|told| told.correlation);
            assert!(out.eq(0..MOST as u32));
            assert!(!ring.is_filling());
        }
    }

    #[test]
    fn each_fact_of_many_threads_comes_once() {
        const THREADS: u32 = 4;
        const EACH: u32 = 100_000;
        let ring = ring();
        let mut seen = vec![0u32; THREADS as usize];
        let mut count = 0;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        let told = |n| Told {
                            context: thread,
                            ..fact(n)
                        };
                        (1..=EACH).filter(|n| ring.put(&told(*n))).count() as u32
                    })
                })
                .collect();
            let mut take = || {
                while let Some(told) = ring.take() {
                    let last = &mut seen[told.context as usize];
                    assert!(told.correlation > *last, "in the order of its thread");
                    *last = told.correlation;
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
