//! The state of a sampled thread between its samples: its last blocking call, and its last sample when that waits for
//! a record of the kernel ([`crate::perf_ring`]).

use crate::perf_ring::{PERIOD_NS, PerfRecord, Ring};
use crate::procfs::{ActivityFile, SystemCall, Turns, TurnsFile};

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
    /// The time of the last sample and the turns then; `None` before the first, and after a rest.
    pub sampled: Option<(i64, Option<Turns>)>,
    /// The time before the last sample in which samples are missing, until it has been filled.
    pub hole: Option<Hole>,
    pub uncovered: UncoveredTime,
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
    /// The thread's turns before this sample; `None` where they are not known.
    pub turns: Option<Turns>,
}

/// A time in which the sampling thread took no samples of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub from_ns: i64,
    pub until_ns: i64,
    /// The time between two samples.
    pub period_ns: i64,
}

/// The time in holes that no sample stands for so far. A short hole may have no kernel record although the thread ran, and the record of
/// another hole stands for more than that hole: only their sum is right.
#[derive(Debug, Default)]
pub struct UncoveredTime {
    /// All of it; negative where records stood for more.
    all_ns: i64,
    /// For how long the thread waited for a processor.
    waited_ns: i64,
    /// The last hole, as long as a wait that began in it may go on.
    last: Option<Hole>,
    /// The longest hole since missing samples were last taken, and why it is one.
    longest: Option<(Hole, &'static str)>,
}

impl UncoveredTime {
    /// Adds a hole with so many kernel records, and why it is one. Returns the time that each of the records stands for: a period of the
    /// thread's own time, and the time of waiting before. Who waits for a processor stays at the same place of its code.
    pub fn add(&mut self, hole: Hole, reason: &'static str, records: usize) -> i64 {
        let length = |hole: &Hole| hole.until_ns - hole.from_ns;
        self.all_ns += length(&hole);
        self.last = Some(hole);
        if self
            .longest
            .is_none_or(|(longest, _)| length(&longest) <= length(&hole))
        {
            self.longest = Some((hole, reason));
        }
        let mut each_ns = 0;
        if let Some(records) = i64::try_from(records).ok().filter(|records| *records > 0) {
            each_ns = PERIOD_NS + std::mem::take(&mut self.waited_ns) / records;
            self.all_ns -= each_ns * records;
        }
        each_ns
    }

    /// Notes that the system tells a wait of this length that ended before this time, a little after a hole. The system tells a wait at its
    /// end only: the wait may have begun in the hole.
    fn end_wait(&mut self, time_ns: i64, waited_ns: i64) {
        if let Some(hole) = self.last
            && waited_ns > 0
        {
            self.last = None;
            let in_hole_ns = waited_ns - (time_ns - hole.until_ns);
            self.waited_ns += in_hole_ns.clamp(0, hole.until_ns - hole.from_ns);
        }
    }

    /// Returns how many samples are missing, with the reason, and counts them no more.
    pub fn take_missing(&mut self) -> Option<(u64, &'static str)> {
        let (hole, reason) = self.longest.take()?;
        let missing = (self.all_ns + hole.period_ns / 2).max(0) / hole.period_ns;
        self.all_ns -= missing * hole.period_ns;
        (missing > 0).then_some((missing.unsigned_abs(), reason))
    }
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
            sampled: None,
            hole: None,
            uncovered: UncoveredTime::default(),
            last: None,
            recording: RingState::Untried,
            pending: None,
        }
    }

    /// Forgets the last sample because the process runs another program.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the time that a sample stands for. A thread that has been in one system call since its last sample, and had no turn on a
    /// processor meanwhile (`turns`), did nothing else all the time: its sample stands for that time. A sample otherwise stands for
    /// `period_ns`, and a longer time before it is a [`Self::hole`].
    pub fn stands_for(
        &mut self,
        (time_ns, period_ns): (i64, i64),
        call: Option<SystemCall>,
        turns: Option<Turns>,
    ) -> i64 {
        let period_ns = period_ns.max(1);
        let Some((last_ns, turns_before)) = self.sampled.replace((time_ns, turns)) else {
            return period_ns;
        };
        let since_ns = time_ns - last_ns;
        let waited = |turns: Option<Turns>| turns.map_or(0, |turns| turns.waited_ns);
        let waited_ns = waited(turns) - waited(turns_before);
        // Less is jitter.
        if since_ns < 2 * period_ns {
            self.uncovered.end_wait(time_ns, waited_ns);
            return period_ns;
        }
        let last = self.last.as_ref();
        let stayed = last.is_some_and(|last| Some(last.call) == call && last.turns == turns);
        if stayed && turns.is_some() {
            return since_ns;
        }
        // The samples at both ends have their share of the waiting.
        let in_hole = (since_ns - period_ns) as f64 / since_ns as f64;
        self.uncovered.waited_ns += (waited_ns.max(0) as f64 * in_hole) as i64;
        self.hole = Some(Hole {
            from_ns: last_ns + period_ns / 2,
            until_ns: time_ns - period_ns / 2,
            period_ns,
        });
        period_ns
    }

    /// Ends the kernel's recording for now.
    pub fn rest(&mut self) {
        self.sampled = None;
        self.hole = None;
        self.uncovered = UncoveredTime::default();
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
        let turns = |count| {
            Some(Turns {
                count,
                waited_ns: 0,
            })
        };
        assert_eq!(thread.stands_for(times(100), None, turns(5)), 2 * MS);
        assert_eq!(thread.hole, None);
        let slept = |turns| {
            Some(BlockedCall {
                call: call(1),
                python: Vec::new(),
                stack: None,
                turns,
            })
        };
        for (last, call, turns, expected_ms) in [
            // It slept all the time.
            (slept(turns(5)), Some(call(1)), turns(5), 20),
            // It woke and slept again, is in another call, or runs.
            (slept(turns(5)), Some(call(1)), turns(6), 2),
            (slept(turns(5)), Some(call(2)), turns(5), 2),
            (slept(turns(5)), None, turns(5), 2),
            (None, Some(call(1)), turns(5), 2),
            // The kernel does not count turns.
            (slept(None), Some(call(1)), None, 2),
        ] {
            thread.sampled = Some((100 * MS, turns));
            thread.last = last;
            thread.hole = None;
            let period_ns = thread.stands_for(times(120), call, turns);
            assert_eq!(period_ns, expected_ms * MS);
            let hole = thread.hole.map(|hole| [hole.from_ns, hole.until_ns]);
            let expected = (expected_ms == 2).then_some([101 * MS, 119 * MS]);
            assert_eq!(hole, expected);
        }
        thread.hole = None;
        thread.stands_for(times(123), None, None);
        assert_eq!(thread.hole, None);
        thread.rest();
        assert_eq!(thread.stands_for(times(900), None, None), 2 * MS);
        assert_eq!(thread.hole, None);
    }

    #[test]
    fn records_stand_for_running_and_for_waiting_to_run_and_the_rest_is_missing() {
        // The program's share of a processor, whether it sleeps for half of the time, and the length of the holes.
        for (share, sleeps, hole_ms) in [
            (1.0, false, 100),
            (0.5, false, 100),
            (0.1, false, 20),
            (0.5, true, 40),
            (0.0, true, 100),
        ] {
            let awake = if sleeps { 0.5 } else { 1.0 };
            let ran_ms = f64::from(hole_ms) * share * awake;
            let waited_ms = f64::from(hole_ms) * awake - ran_ms;
            let mut uncovered = UncoveredTime::default();
            let (mut own_ms, mut covered_ns) = (0.0, 0);
            let all_ms = 100 * hole_ms;
            for _ in 0..100 {
                let period_ms = PERIOD_NS as f64 / 1e6;
                let before = (own_ms / period_ms) as usize;
                own_ms += if share == 0.0 { 0.0 } else { ran_ms };
                let records = (own_ms / period_ms) as usize - before;
                if share > 0.0 {
                    uncovered.waited_ns += (waited_ms * 1e6) as i64;
                }
                let hole = Hole {
                    from_ns: 0,
                    until_ns: i64::from(hole_ms) * MS,
                    period_ns: 2 * MS,
                };
                let each_ns = uncovered.add(hole, "busy", records);
                covered_ns += each_ns * records as i64;
            }
            let missing = uncovered.take_missing().map_or(0, |(count, _)| count);
            assert_eq!(uncovered.take_missing(), None);
            let expected = if share == 0.0 { 0.0 } else { awake };
            let covered = covered_ns as f64 / 1e6 / f64::from(all_ms);
            assert!((covered - expected).abs() < 0.05, "{share} {covered}");
            let all = covered + missing as f64 * 2.0 / f64::from(all_ms);
            assert!((all - 1.0).abs() < 0.05, "{share} {all}");
        }
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
        let count = |turns: Option<Turns>| turns.map(|turns| turns.count);
        assert!(
            count(after) > count(before) || before.is_none(),
            "{before:?} {after:?}"
        );
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }
}
