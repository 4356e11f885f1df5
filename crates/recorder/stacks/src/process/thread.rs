//! The state of a sampled thread between its samples: its last blocking call, and its last sample when that waits for
//! a record of the kernel ([`crate::perf_ring`]).

use crate::perf_ring::{PerfRecord, Ring};
use crate::procfs::{ActivityFile, SystemCall, TurnsFile};

/// A kernel record belongs to a sample that is at most this far away.
const MAX_RECORD_DISTANCE_NS: i64 = 2_000_000;

/// Why a thread is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The owner of the sampling thread (the session that records the program) asked for the samples.
    Followed,
    /// The thread was last seen to hold the interpreter's lock at this time.
    HeldLock(i64),
}

/// A thread that is sampled.
pub struct Thread {
    /// The thread's number in its own PID namespace.
    pub inner: u32,
    pub activity: ActivityFile,
    pub turns: TurnsFile,
    pub reason: Reason,
    /// The time of the last sample; `None` before the first, and after a rest.
    pub sampled_ns: Option<i64>,
    /// The blocking call of the last sample, and its stack.
    pub last: Option<BlockedCall>,
    /// Whether the kernel records the thread.
    pub recording: RingState,
    /// The last sample, if the thread was running: its native frames are known only at the next one.
    pub pending: Option<PendingSample>,
}

/// A system call in which a thread was blocked, and its stack then.
pub struct BlockedCall {
    pub call: SystemCall,
    /// The Python stack, as locations, outermost first.
    pub python: Vec<u64>,
    /// The number of the whole stack.
    pub stack: Option<u32>,
    /// How often the thread had been given a processor before this sample; `None` where that is not known.
    pub turns: Option<u64>,
}

/// Whether the kernel records where the thread runs.
pub enum RingState {
    /// It was not tried, or ended for now.
    Untried,
    Open(Ring),
    Refused,
}

/// A sample that waits for the kernel record nearest to it.
pub struct PendingSample {
    pub time_ns: i64,
    pub period_ns: i64,
    pub python: Vec<u64>,
    /// The nearest record so far.
    pub nearest: Option<NearRecord>,
}

/// A kernel record and its distance from a sample.
pub struct NearRecord {
    pub distance_ns: i64,
    pub moment: PerfRecord,
}

impl Thread {
    pub fn new(inner: u32, activity: ActivityFile, turns: TurnsFile, reason: Reason) -> Thread {
        Thread {
            inner,
            activity,
            turns,
            reason,
            sampled_ns: None,
            last: None,
            recording: RingState::Untried,
            pending: None,
        }
    }

    /// Forgets the last sample because the process runs another program.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the time that a sample stands for, and how many samples are missing before it. A thread that has been in one system call
    /// since its last sample, and had no turn on a processor meanwhile (`turns`), did nothing else all the time: its sample stands for
    /// that time. A sample otherwise stands for `period_ns`.
    pub fn stands_for(
        &mut self,
        (time_ns, period_ns): (i64, i64),
        call: Option<SystemCall>,
        turns: Option<u64>,
    ) -> (i64, u64) {
        let last_ns = self.sampled_ns.replace(time_ns);
        let since_ns = last_ns.map_or(0, |last_ns| time_ns - last_ns);
        let period_ns = period_ns.max(1);
        // Less is jitter.
        if since_ns < 2 * period_ns {
            return (period_ns, 0);
        }
        let missing = (since_ns + period_ns / 2) / period_ns - 1;
        let last = self.last.as_ref();
        let stayed = last.is_some_and(|last| Some(last.call) == call && last.turns == turns);
        match stayed && turns.is_some() {
            true => (since_ns, 0),
            false => (period_ns, missing.unsigned_abs()),
        }
    }

    /// Ends the kernel's recording for now.
    pub fn rest(&mut self) {
        self.sampled_ns = None;
        if matches!(self.recording, RingState::Open(_)) {
            self.recording = RingState::Untried;
        }
    }
}

impl NearRecord {
    /// Keeps a kernel record if it is near enough and nearer than the one so far.
    pub fn keep_nearer(
        kept: &mut Option<NearRecord>,
        distance_ns: i64,
        moment: impl FnOnce() -> PerfRecord,
    ) {
        let is_nearer = kept
            .as_ref()
            .is_none_or(|kept| distance_ns < kept.distance_ns);
        if distance_ns <= MAX_RECORD_DISTANCE_NS && is_nearer {
            *kept = Some(NearRecord {
                distance_ns,
                moment: moment(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn call(number: i64) -> SystemCall {
        SystemCall {
            number,
            argument: 0,
            stack_pointer: 0,
            instruction: 0,
        }
    }

    #[test]
    fn a_sample_stands_for_a_hole_only_where_the_thread_had_no_turn_in_it() {
        let own = std::path::Path::new("/proc/self/task").join(std::process::id().to_string());
        let activity = ActivityFile::open(&own).unwrap();
        let mut thread = Thread::new(1, activity, TurnsFile::open(&own), Reason::Followed);
        let times = |at_ms: i64| (at_ms * MS, 2 * MS);
        assert_eq!(thread.stands_for(times(100), None, Some(5)), (2 * MS, 0));
        let slept = |turns| {
            Some(BlockedCall {
                call: call(1),
                python: Vec::new(),
                stack: None,
                turns,
            })
        };
        for (last, call, turns, expected) in [
            // It slept all the time.
            (slept(Some(5)), Some(call(1)), Some(5), (20 * MS, 0)),
            // It woke and slept again, is in another call, or runs.
            (slept(Some(5)), Some(call(1)), Some(6), (2 * MS, 9)),
            (slept(Some(5)), Some(call(2)), Some(5), (2 * MS, 9)),
            (slept(Some(5)), None, Some(5), (2 * MS, 9)),
            (None, Some(call(1)), Some(5), (2 * MS, 9)),
            // The kernel does not count turns.
            (slept(None), Some(call(1)), None, (2 * MS, 9)),
        ] {
            thread.sampled_ns = Some(100 * MS);
            thread.last = last;
            assert_eq!(thread.stands_for(times(120), call, turns), expected);
        }
        assert_eq!(thread.stands_for(times(123), None, None), (2 * MS, 0));
        thread.rest();
        assert_eq!(thread.stands_for(times(900), None, None), (2 * MS, 0));
    }

    #[test]
    fn turns_are_counted_while_a_thread_sleeps_and_wakes() {
        let (task, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            task.send(rustix::thread::gettid().as_raw_nonzero())
                .unwrap();
            std::thread::park();
            std::thread::sleep(std::time::Duration::from_millis(5));
            std::thread::park();
        });
        let folder = format!("/proc/self/task/{}", told.recv().unwrap());
        let turns = TurnsFile::open(std::path::Path::new(&folder));
        let pause = || std::thread::sleep(std::time::Duration::from_millis(50));
        pause();
        let before = turns.read();
        pause();
        assert_eq!(turns.read(), before, "it sleeps");
        sleeper.thread().unpark();
        pause();
        let after = turns.read();
        // A kernel without these counts says nothing.
        assert!(after > before || before.is_none(), "{before:?} {after:?}");
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }
}
