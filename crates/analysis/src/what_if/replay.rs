//! Runs a recorded run again: each moment comes as soon as all that it had to wait for allows. The moments and the changes to their
//! delays go in; the end of the run comes out, and on request what held each moment.
//!
//! With nothing changed each moment comes exactly when it was recorded, since the arm that held it has the recorded delay. The pass
//! is one walk over the moments in their recorded order: none waits for a later one. Several ranks are walked over together, since they
//! wait for each other at their collectives.

use super::collectives::{Arrival, Arrivals, Collectives};
use super::effects::{Delay, Effects};
use super::recorded::{Arm, Call, Kind, Leave, Moment, Recorded, Return, Work, WorkMoment};
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
    /// The clock of this run, of several ranks, shows so much too little.
    pub(super) clock: Option<(u32, i64)>,
}

impl Choices {
    pub(super) const RECORDED: Choices = Choices {
        pools: false,
        guesses: true,
        hands_over: true,
        clock: None,
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

/// Runs runs again, those of several ranks together, and keeps the moments' times where `keeps` is true. `effects` are those on each run.
/// Returns when the last rank arrived at each collective, too.
pub(super) fn replay(
    runs: &[&Recorded],
    collectives: &Collectives,
    effects: &[Effects],
    choices: Choices,
    keeps: bool,
) -> (Vec<Replayed>, Vec<Arrival>) {
    let mut arrivals = Arrivals::new(collectives, choices.clock);
    let runs = runs.iter().zip(effects).zip(0..);
    let mut runs: Vec<Run> = runs
        .map(|((recorded, effects), number)| Run::new(recorded, number, effects, choices, keeps))
        .collect();
    match &mut runs[..] {
        [run] => (0..run.recorded.moments.len() as u32).for_each(|at| run.go_on(at, &mut arrivals)),
        runs => {
            for (run, at) in &collectives.order {
                runs[*run as usize].go_on(*at, &mut arrivals);
            }
        }
    }
    let replayed = runs.into_iter().map(|run| run.replayed).collect();
    (replayed, arrivals.into_last())
}

/// A run while it is run again.
struct Run<'r> {
    recorded: &'r Recorded,
    /// Its number among those that are replayed together.
    number: u32,
    effects: &'r Effects,
    choices: Choices,
    keeps: bool,
    state: State,
    /// The number of waits so far that a program can leave out.
    waits: u64,
    replayed: Replayed,
}

impl<'r> Run<'r> {
    fn new(
        recorded: &'r Recorded,
        number: u32,
        effects: &'r Effects,
        choices: Choices,
        keeps: bool,
    ) -> Run<'r> {
        Run {
            recorded,
            number,
            effects,
            choices,
            keeps,
            state: State::new(recorded),
            waits: 0,
            replayed: Replayed {
                end_ns: i64::MIN,
                last: NONE,
                held_by: Vec::new(),
                times_ns: Vec::new(),
            },
        }
    }

    /// Goes on with the moment at a place.
    fn go_on(&mut self, at: u32, arrivals: &mut Arrivals) {
        let (recorded, effects) = (self.recorded, self.effects);
        let moment = &recorded.moments[at as usize];
        let here = |ns: i64| At { ns, by: at };
        let state = &mut self.state;
        let (begun, ended_ns) = match &moment.kind {
            Kind::Call(call) => {
                let start = recorded.call(state, effects, self.choices, call, at);
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
                self.waits += u64::from(is_optional);
                let is_dropped = is_optional && effects.drops_wait(self.waits);
                let is_made = !is_dropped && !effects.leaves_out(at);
                let (_, called) = state.calls[wait.thread as usize];
                let end = match recorded.work_ended(state, effects, self.choices, wait) {
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
                let start = recorded.start_of_work(state, effects, self.choices, moment, work);
                let end_ns = match work.collective {
                    NONE => start.ns.saturating_add(effects.work(work)),
                    // When it ends, the last rank decides.
                    collective => {
                        arrivals.arrive(collective, self.number, start.ns, at);
                        start.ns
                    }
                };
                let overlaps = effects.overlaps_transfers();
                state.add_work(work, here(start.ns), here(end_ns), overlaps);
                (start, end_ns)
            }
            Kind::Leave(leave) => {
                let (last_ns, by) = arrivals.last(leave.collective, self.number);
                let own_ns = self.own_time(leave, arrivals);
                let end_ns = last_ns.saturating_add(own_ns);
                if let Some(Kind::Work(work)) = recorded.kind_at(leave.arrived) {
                    self.state.leave(work, leave.arrived, here(end_ns));
                    if let Some((_, ended_ns)) =
                        self.replayed.times_ns.get_mut(leave.arrived as usize)
                    {
                        *ended_ns = end_ns;
                    }
                }
                (At { ns: last_ns, by }, end_ns)
            }
        };
        let replayed = &mut self.replayed;
        if recorded.ends_run(&moment.kind) && ended_ns >= replayed.end_ns {
            replayed.end_ns = ended_ns;
            replayed.last = at;
        }
        if self.keeps {
            replayed.held_by.push(begun.by);
            replayed.times_ns.push((begun.ns, ended_ns));
        }
    }

    /// Returns how long after its last arrival a collective ends on this run.
    fn own_time(&self, leave: &Leave, arrivals: &Arrivals) -> i64 {
        let Some(Kind::Work(work)) = self.recorded.kind_at(leave.arrived) else {
            return 0;
        };
        let arrived_ns = self.recorded.moments[leave.arrived as usize].at_ns;
        let left_ns = arrived_ns.saturating_add(work.length_ns);
        let own_ns = match self.choices.pools {
            true => arrivals.least_own_ns(leave.collective),
            false => arrivals.own_ns(leave.collective, self.number, left_ns),
        };
        // By clocks that differ, it may end before its last arrival.
        let length_ns = own_ns.max(0);
        let changed_ns = self.effects.work(&WorkMoment { length_ns, ..*work });
        changed_ns.saturating_add(own_ns.min(0))
    }
}

impl Recorded {
    /// Returns what happens at the moment at a place.
    pub(super) fn kind_at(&self, at: u32) -> Option<&Kind> {
        self.moments.get(at as usize).map(|moment| &moment.kind)
    }

    /// Returns when a call starts, with what held it.
    fn call(&self, state: &State, effects: &Effects, choices: Choices, call: &Call, at: u32) -> At {
        let (_, before) = state.calls[call.thread as usize];
        let handed_by = state.calls.get(call.handed_by as usize);
        match handed_by.filter(|_| choices.hands_over || call.handed_is_seen) {
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

    /// Ends a part in a collective that arrived at the moment at a place.
    fn leave(&mut self, work: &WorkMoment, arrived: u32, end: At) {
        let queue = work.queue as usize;
        let (_, last) = &mut self.queues[queue];
        *last = end.later(*last);
        let [_, kernel] = &mut self.overlapped[queue].kernels;
        if kernel.by == arrived {
            *kernel = end;
        }
        if let Some(ended) = self.ended.get_mut(work.slot as usize) {
            *ended = end.later(*ended);
        }
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
