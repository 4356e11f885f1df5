//! Runs a recorded run again: each moment comes as soon as all that it had to wait for allows. The moments and the changes to their
//! delays go in; the end of the run comes out, and on request what held each moment.
//!
//! With nothing changed each moment comes exactly when it was recorded, since the arm that held it has the recorded delay. The pass
//! is one walk over the moments in their recorded order: none waits for a later one.

use super::effects::{Delay, Effects};
use super::recorded::{Arm, Call, Kind, Moment, Recorded, Return, Work, WorkMoment};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::TransferKind;

/// How a run is replayed where the trace leaves a choice. The answers of all choices bound the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choices {
    /// Delays are the usual ones of their kind, in place of the recorded ones.
    pub(super) pools: bool,
    /// Waits whose work is told by times alone wait for that work; otherwise they take their recorded time.
    pub(super) guesses: bool,
    /// Threads wait for each other where a hand-over was found.
    pub(super) hands_over: bool,
}

impl Choices {
    pub(super) const RECORDED: Choices = Choices {
        pools: false,
        guesses: true,
        hands_over: true,
    };

    /// Returns true for the replay of usual delays that tests the graph: all else is as the trace has it.
    pub(super) fn is_pooled(self) -> bool {
        let pools = Choices {
            pools: true,
            ..Choices::RECORDED
        };
        self == pools
    }
}

/// A moment of the replay: when, and the moment of the recording that it is; [`NONE`] for the start of the run.
#[derive(Debug, Clone, Copy)]
struct At {
    ns: i64,
    by: u32,
}

const NEVER: At = At {
    ns: i64::MIN,
    by: NONE,
};

impl At {
    fn after(self, delay_ns: i64) -> At {
        At {
            ns: self.ns.saturating_add(delay_ns),
            by: self.by,
        }
    }

    /// Returns the later of both; of equals, the other.
    fn later(self, other: At) -> At {
        match self.ns > other.ns {
            true => self,
            false => other,
        }
    }
}

/// What a replay came to.
#[derive(Debug)]
pub(super) struct Replayed {
    /// The end of the run.
    pub(super) end_ns: i64,
    /// The moment that ends last.
    pub(super) last: u32,
    /// The moment that held each, in the order of the moments; empty where it was not asked for.
    pub(super) held_by: Vec<u32>,
    /// When each moment began, and when what it stands for ended; empty where it was not asked for.
    pub(super) times_ns: Vec<(i64, i64)>,
}

struct State {
    /// The start and the end of the last call of each thread.
    calls: Vec<(At, At)>,
    /// The start of the last work and the last end of each queue; transfers that overlap have queues of their own.
    queues: Vec<(At, At)>,
    /// The ends of the last kernels of each queue before a transfer, and of its last transfer.
    overlapped: Vec<Overlapped>,
    sent: Vec<At>,
    ended: Vec<At>,
}

/// The state of a queue whose transfers run beside its kernels.
#[derive(Debug, Clone, Copy)]
struct Overlapped {
    transfer: At,
    /// The ends of the last two kernels: a transfer fills one of two buffers while the kernel reads the other.
    kernels: [At; 2],
}

impl Recorded {
    /// Runs the run again, and keeps the moments' times where `keeps` is true.
    pub(super) fn replay(&self, effects: &Effects, choices: Choices, keeps: bool) -> Replayed {
        let mut state = State::new(self);
        let mut replayed = Replayed {
            end_ns: i64::MIN,
            last: NONE,
            held_by: Vec::new(),
            times_ns: Vec::new(),
        };
        let mut waits: u64 = 0;
        for (moment, at) in self.moments.iter().zip(0u32..) {
            let here = |ns: i64| At { ns, by: at };
            let (begun, ended_ns) = match &moment.kind {
                Kind::Call(call) => {
                    let start = self.call(&state, effects, choices, call, at);
                    let length_ns = match effects.leaves_out(at) {
                        true => 0,
                        false => effects.call(call, at),
                    };
                    let end_ns = start.ns.saturating_add(length_ns);
                    state.calls[call.thread as usize] = (here(start.ns), here(end_ns));
                    (start, end_ns)
                }
                Kind::Submission(submission) => {
                    let sent = match state.calls.get(submission.thread as usize) {
                        Some((start, end)) if submission.is_in_call => {
                            let length_ns = end.ns.saturating_sub(start.ns).max(0);
                            start.after(submission.offset_ns.min(length_ns))
                        }
                        Some((_, end)) => end.after(submission.offset_ns),
                        None => At {
                            ns: moment.at_ns,
                            by: NONE,
                        },
                    };
                    state.sent[submission.slot as usize] = here(sent.ns);
                    (sent, sent.ns)
                }
                Kind::Return(wait) => {
                    let is_optional = wait.can_be_left_out();
                    waits += u64::from(is_optional);
                    let is_dropped = is_optional && effects.drops_wait(waits);
                    let is_made = !is_dropped && !effects.leaves_out(at);
                    let (_, called) = state.calls[wait.thread as usize];
                    let end = match self.work_ended(&state, effects, choices, wait) {
                        Some(ended) if is_made => ended.later(called),
                        // Without the work that held it, the wait takes the time that it took.
                        None if is_made && wait.held => called.after(wait.length_ns),
                        _ => called,
                    };
                    state.calls[wait.thread as usize].1 = here(end.ns);
                    (end, end.ns)
                }
                Kind::Work(work) if effects.leaves_out(at) => {
                    let done = state.skip_work(work);
                    (done, done.ns)
                }
                Kind::Work(work) => {
                    let start = self.start_of_work(&state, effects, choices, moment, work);
                    let end_ns = start.ns.saturating_add(effects.work(work));
                    let overlaps = effects.overlaps_transfers();
                    state.add_work(work, here(start.ns), here(end_ns), overlaps);
                    (start, end_ns)
                }
            };
            if self.ends_run(&moment.kind) && ended_ns >= replayed.end_ns {
                replayed.end_ns = ended_ns;
                replayed.last = at;
            }
            if keeps {
                replayed.held_by.push(begun.by);
                replayed.times_ns.push((begun.ns, ended_ns));
            }
        }
        replayed
    }

    /// Returns when a call starts, with what held it.
    fn call(&self, state: &State, effects: &Effects, choices: Choices, call: &Call, at: u32) -> At {
        let (_, before) = state.calls[call.thread as usize];
        let handed_by = state.calls.get(call.handed_by as usize);
        match handed_by.filter(|_| choices.hands_over) {
            Some((_, handed)) => {
                before.later(handed.after(effects.own_time(call, call.handed_ns, at)))
            }
            None => before.after(effects.own_time(call, call.own_ns, at)),
        }
    }

    /// Returns when the end of the work that a call waited for lets it return; `None` where no such work is known.
    fn work_ended(
        &self,
        state: &State,
        effects: &Effects,
        choices: Choices,
        wait: &Return,
    ) -> Option<At> {
        if wait.slots.is_empty() || wait.guessed && !choices.guesses {
            return None;
        }
        let usual_ns = self.usual.wake.get(&wait.call).copied();
        let wake_ns = match (choices.pools && wait.held, usual_ns) {
            (true, Some(usual_ns)) => usual_ns,
            _ => wait.wake_ns,
        };
        let ends = self.slots(wait.slots).iter();
        let ends = ends.map(|slot| state.ended[*slot as usize]);
        let last = ends.fold(NEVER, |last, end| end.later(last));
        let wake_ns = effects.delay(Delay::WakeUp, wake_ns);
        (last.ns > i64::MIN).then(|| last.after(wake_ns))
    }

    /// Returns when a piece of work starts, with what held it.
    fn start_of_work(
        &self,
        state: &State,
        effects: &Effects,
        choices: Choices,
        moment: &Moment,
        work: &WorkMoment,
    ) -> At {
        let queue = work.queue as usize;
        let delay = |arm: Arm| {
            let delay_ns = work.delays[arm as usize]?;
            let is_pooled = choices.pools && work.held_by == Some(arm) && !work.overlaps;
            let delay_ns = [delay_ns, self.usual.arms[arm as usize]][usize::from(is_pooled)];
            Some(effects.delay(Delay::Arm(arm), delay_ns))
        };
        let mut start = NEVER;
        if let Some(delay_ns) = delay(Arm::Queue) {
            let (started, ended) = state.queues[queue];
            let ready = [ended, started][usize::from(work.overlaps)];
            let overlapped = &state.overlapped[queue];
            let ready = match (effects.overlaps_transfers(), work.content) {
                (false, _) => ready,
                // Only what is brought to the device can be brought early: other copies are of what kernels made.
                (true, Work::Transfer(TransferKind::HostToDevice)) => {
                    overlapped.transfer.later(overlapped.kernels[0])
                }
                (true, _) => overlapped.kernels[1].later(overlapped.transfer),
            };
            start = start.later(ready.after(delay_ns));
        }
        if let Some(delay_ns) = delay(Arm::Submission) {
            let sent = state.sent[work.slot as usize];
            start = start.later(sent.after(delay_ns));
        }
        if let Some(delay_ns) = delay(Arm::Dependency).filter(|_| !effects.drops_dependencies()) {
            let ends = self.slots(work.depends_on).iter();
            let ends = ends.map(|slot| state.ended[*slot as usize]);
            let last = ends.fold(NEVER, |last, end| end.later(last));
            start = start.later(last.after(delay_ns));
        }
        match start.ns {
            i64::MIN => At {
                ns: moment.at_ns,
                by: NONE,
            },
            _ => start,
        }
    }
}

impl State {
    /// Returns the state at the start of a run.
    fn new(recorded: &Recorded) -> State {
        let start = At {
            ns: recorded.window.start_ns,
            by: NONE,
        };
        let overlapped = Overlapped {
            transfer: NEVER,
            kernels: [NEVER; 2],
        };
        State {
            calls: vec![(start, start); recorded.threads.len()],
            queues: vec![(NEVER, NEVER); recorded.queue_count],
            overlapped: vec![overlapped; recorded.queue_count],
            sent: vec![NEVER; recorded.slot_count],
            ended: vec![NEVER; recorded.slot_count],
        }
    }

    /// Takes a piece of work for done as soon as what was ahead of it is. Work behind it then waits for that.
    fn skip_work(&mut self, work: &WorkMoment) -> At {
        let (_, ahead) = self.queues[work.queue as usize];
        let slot = work.slot as usize;
        let done = ahead.later(self.sent[slot]);
        self.ended[slot] = done;
        done
    }

    fn add_work(&mut self, work: &WorkMoment, start: At, end: At, overlaps: bool) {
        let queue = work.queue as usize;
        let (_, last) = self.queues[queue];
        self.queues[queue] = (start, end.later(last));
        let overlapped = &mut self.overlapped[queue];
        match work.content {
            Work::Transfer(TransferKind::HostToDevice) => overlapped.transfer = end,
            _ => overlapped.kernels = [overlapped.kernels[1], end],
        }
        if let Some(ended) = self.ended.get_mut(work.slot as usize) {
            // A later wait for the queue is for all of its work, also where transfers overtake kernels.
            let end = match overlaps {
                true => end.later(last),
                false => end,
            };
            *ended = end.later(*ended);
        }
    }
}
