//! Runs a recorded run again: each moment comes as soon as all that it had to wait for allows. The moments and the changes to their
//! delays go in; the end of the run comes out, and on request what held each moment.
//!
//! With nothing changed each moment comes exactly when it was recorded, since the arm that held it has the recorded delay. The pass
//! is one walk over the moments in their recorded order: none waits for a later one.

use super::effects::Effects;
use super::recorded::{Arm, Call, Kind, Moment, Recorded, Return, Work, WorkMoment};
use gapscope_trace::lookup::NONE;

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
        let start = At {
            ns: self.window.start_ns,
            by: NONE,
        };
        let mut state = State {
            calls: vec![(start, start); self.threads.len()],
            queues: vec![(NEVER, NEVER); self.queue_count],
            overlapped: vec![
                Overlapped {
                    transfer: NEVER,
                    kernels: [NEVER; 2],
                };
                self.queue_count
            ],
            sent: vec![NEVER; self.slot_count],
            ended: vec![NEVER; self.slot_count],
        };
        let mut replayed = Replayed {
            end_ns: i64::MIN,
            last: NONE,
            held_by: Vec::new(),
            times_ns: Vec::new(),
        };
        let mut waits: u64 = 0;
        for (moment, at) in self.moments.iter().zip(0u32..) {
            let (held_by, began_ns, ended_ns, counts) = match &moment.kind {
                Kind::Call(call) => {
                    let (start, end) = self.call(&state, effects, choices, call, at);
                    let (last, _) = (start, end);
                    state.calls[call.thread as usize] = (
                        At {
                            ns: last.ns,
                            by: at,
                        },
                        At { ns: end, by: at },
                    );
                    (start.by, start.ns, end, self.submits[call.thread as usize])
                }
                Kind::Submission(submission) => {
                    let sent = match state.calls.get(submission.thread as usize) {
                        Some((start, end)) if submission.is_in_call => {
                            let length_ns = (end.ns - start.ns).max(0);
                            start.after(submission.offset_ns.min(length_ns))
                        }
                        Some((_, end)) => end.after(submission.offset_ns),
                        None => At {
                            ns: moment.at_ns,
                            by: NONE,
                        },
                    };
                    state.sent[submission.slot as usize] = At {
                        ns: sent.ns,
                        by: at,
                    };
                    (sent.by, sent.ns, sent.ns, false)
                }
                Kind::Return(wait) => {
                    let (_, called) = state.calls[wait.thread as usize];
                    waits += u64::from(wait.held);
                    let waits_for = self.returned(&state, choices, wait);
                    let is_dropped = wait.held && effects.drops_wait(waits);
                    let end = match waits_for.filter(|_| !is_dropped) {
                        Some(ended) => ended.later(called),
                        None => called,
                    };
                    let end = match waits_for {
                        None if wait.held => called.after(wait.length_ns),
                        _ => end,
                    };
                    state.calls[wait.thread as usize].1 = At { ns: end.ns, by: at };
                    (end.by, end.ns, end.ns, self.submits[wait.thread as usize])
                }
                Kind::Work(work) => {
                    let start = self.work(&mut state, effects, choices, moment, work, at);
                    let length_ns = effects.work(work, at);
                    (start.by, start.ns, start.ns.saturating_add(length_ns), true)
                }
            };
            if counts && ended_ns >= replayed.end_ns {
                replayed.end_ns = ended_ns;
                replayed.last = at;
            }
            if keeps {
                replayed.held_by.push(held_by);
                replayed.times_ns.push((began_ns, ended_ns));
            }
        }
        replayed
    }

    /// Returns when a call starts, with what held it, and when it ends.
    fn call(
        &self,
        state: &State,
        effects: &Effects,
        choices: Choices,
        call: &Call,
        at: u32,
    ) -> (At, i64) {
        let (_, before) = state.calls[call.thread as usize];
        let handed_by = state.calls.get(call.handed_by as usize);
        let start = match handed_by.filter(|_| choices.hands_over) {
            Some((_, handed)) => {
                before.later(handed.after(effects.own_time(call, call.handed_ns, at)))
            }
            None => before.after(effects.own_time(call, call.own_ns, at)),
        };
        (start, start.ns.saturating_add(effects.call(call, at)))
    }

    /// Returns when what a call waited for allows it to return; `None` where it waited for nothing known.
    fn returned(&self, state: &State, choices: Choices, wait: &Return) -> Option<At> {
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
        (last.ns > i64::MIN).then(|| last.after(wake_ns))
    }

    /// Runs a piece of work, and returns when it starts, with what held it.
    fn work(
        &self,
        state: &mut State,
        effects: &Effects,
        choices: Choices,
        moment: &Moment,
        work: &WorkMoment,
        at: u32,
    ) -> At {
        let queue = work.queue as usize;
        let delay = |arm: Arm| {
            let delay_ns = work.delays[arm as usize]?;
            let is_pooled = choices.pools && work.held_by == Some(arm) && !work.overlaps;
            Some([delay_ns, self.usual.arms[arm as usize]][usize::from(is_pooled)])
        };
        let mut start = NEVER;
        if let Some(delay_ns) = delay(Arm::Queue) {
            let (started, ended) = state.queues[queue];
            let ready = [ended, started][usize::from(work.overlaps)];
            let overlapped = &state.overlapped[queue];
            let ready = match (effects.overlaps_transfers(), work.content) {
                (false, _) => ready,
                (true, Work::Transfer(_)) => overlapped.transfer.later(overlapped.kernels[0]),
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
        if start.ns == i64::MIN || start.by == NONE && work.held_by.is_none() {
            start = At {
                ns: moment.at_ns,
                by: NONE,
            };
        }
        let end = At {
            ns: start.ns.saturating_add(effects.work(work, at)),
            by: at,
        };
        let (_, last) = state.queues[queue];
        state.queues[queue] = (
            At {
                ns: start.ns,
                by: at,
            },
            end.later(last),
        );
        let overlapped = &mut state.overlapped[queue];
        match work.content {
            Work::Transfer(_) => overlapped.transfer = end,
            _ => overlapped.kernels = [overlapped.kernels[1], end],
        }
        if let Some(ended) = state.ended.get_mut(work.slot as usize) {
            *ended = end.later(*ended);
        }
        start
    }
}
