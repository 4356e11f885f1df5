//! The state of a sampled thread between its samples: its last blocking call, and its last sample when that waits for
//! a record of the kernel ([`crate::perf_ring`]).

use crate::perf_ring::{PerfRecord, Ring};
use crate::procfs::{ActivityFile, SystemCall};

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
    pub reason: Reason,
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
    pub fn new(inner: u32, activity: ActivityFile, reason: Reason) -> Thread {
        Thread {
            inner,
            activity,
            reason,
            last: None,
            recording: RingState::Untried,
            pending: None,
        }
    }

    /// Forgets the last sample because the process runs another program.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Ends the kernel's recording for now.
    pub fn rest(&mut self) {
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
