//! Joins the runs of ranks at their collectives: what each rank's kernels are parts of goes in; the order in which the moments of all
//! ranks are replayed comes out, and when the last rank arrived at each collective.
//!
//! A collective ends on a rank after its last arrival on any rank, by so much later as it was recorded there: its own time. Ranks that
//! came earlier wait in their kernels, which is nothing of the kernels' own.
//!
//! The ranks' clocks agree only within an error. It moves who arrived last, and each own time; so a replay can take one rank's clock as
//! wrong by its error ([`Choices::clock`](super::replay::Choices)).

use super::recorded::{Kind, Recorded};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;

/// The collectives that the replayed parts of several runs have in common.
#[derive(Debug, Default)]
pub(super) struct Collectives {
    /// The parts of each collective: the run, and when it arrived and left.
    parts: Vec<Vec<(u32, Interval)>>,
    /// The moments of all runs in the order of the replay, each by its run and its place there; empty for a single run.
    pub(super) order: Vec<(u32, u32)>,
}

/// When the last rank arrived at each collective in a replay.
#[derive(Debug)]
pub(super) struct Arrivals<'c> {
    collectives: &'c Collectives,
    /// A run whose clock shows so much too little.
    clock: Option<(u32, i64)>,
    /// The recorded last arrival at each collective, by that clock.
    recorded_ns: Vec<i64>,
    last: Vec<Arrival>,
}

/// The arrival of a rank at a collective, by a clock of all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) ns: i64,
    pub(super) run: u32,
    /// The place of its moment.
    pub(super) at: u32,
}

impl Collectives {
    /// Joins runs.
    ///
    /// # Errors
    /// A sentence, where the runs contradict each other in what came first.
    pub(super) fn new(runs: &[&Recorded]) -> Result<Collectives, String> {
        let mut collectives = Collectives::default();
        for (recorded, run) in runs.iter().zip(0u32..) {
            for (moment, collective) in parts(recorded) {
                let all = &mut collectives.parts;
                all.resize_with(all.len().max(collective as usize + 1), Vec::new);
                all[collective as usize].push((run, moment));
            }
        }
        if runs.len() > 1 {
            collectives.order = collectives.ordered(runs)?;
        }
        Ok(collectives)
    }

    /// Returns the moments of all runs in an order in which all ranks arrive at a collective before any leaves it.
    fn ordered(&self, runs: &[&Recorded]) -> Result<Vec<(u32, u32)>, String> {
        let mut missing: Vec<usize> = self.parts.iter().map(Vec::len).collect();
        let mut next: Vec<usize> = vec![0; runs.len()];
        let count: usize = runs.iter().map(|run| run.moments.len()).sum();
        let mut order = Vec::with_capacity(count);
        while order.len() < count {
            let upcoming = next.iter().enumerate().filter_map(|(run, at)| {
                let moment = runs[run].moments.get(*at)?;
                let waits = match &moment.kind {
                    Kind::Leave(leave) => missing[leave.collective as usize] > 0,
                    _ => false,
                };
                (!waits).then_some((moment.at_ns, run))
            });
            let Some((_, run)) = upcoming.min() else {
                let problem = "The ranks' collectives wait for each other in a circle, so that they were not matched as they ran.";
                return Err(problem.to_owned());
            };
            let at = next[run];
            if let Kind::Work(work) = &runs[run].moments[at].kind
                && let Some(missing) = missing.get_mut(work.collective as usize)
            {
                *missing -= 1;
            }
            order.push((run as u32, at as u32));
            next[run] += 1;
        }
        Ok(order)
    }

    /// Returns the number of arrivals of ranks.
    pub(super) fn arrivals(&self) -> u64 {
        self.parts.iter().map(|parts| parts.len() as u64).sum()
    }
}

impl<'c> Arrivals<'c> {
    /// Returns the arrivals at the start of a replay.
    pub(super) fn new(collectives: &'c Collectives, clock: Option<(u32, i64)>) -> Arrivals<'c> {
        let never = Arrival {
            ns: i64::MIN,
            run: NONE,
            at: NONE,
        };
        let last_ns = |parts: &Vec<(u32, Interval)>| {
            let starts = parts.iter();
            let starts =
                starts.map(|(run, part)| part.start_ns.saturating_add(wrong_by(clock, *run)));
            starts.max().unwrap_or(i64::MIN)
        };
        Arrivals {
            collectives,
            clock,
            recorded_ns: collectives.parts.iter().map(last_ns).collect(),
            last: vec![never; collectives.parts.len()],
        }
    }

    /// Adds the arrival of a run at a collective.
    pub(super) fn arrive(&mut self, collective: u32, run: u32, ns: i64, at: u32) {
        let ns = ns.saturating_add(wrong_by(self.clock, run));
        let last = &mut self.last[collective as usize];
        if ns >= last.ns {
            *last = Arrival { ns, run, at };
        }
    }

    /// Returns when the last rank arrived at a collective, by the clock of a run, and the place of its moment.
    pub(super) fn last(&self, collective: u32, run: u32) -> (i64, u32) {
        let last = &self.last[collective as usize];
        let ns = last.ns.saturating_sub(wrong_by(self.clock, run));
        (ns, last.at)
    }

    /// Returns by how much later than the last arrival a run left a collective that it left at a time in the recording.
    pub(super) fn own_ns(&self, collective: u32, run: u32, left_ns: i64) -> i64 {
        let left_ns = left_ns.saturating_add(wrong_by(self.clock, run));
        left_ns.saturating_sub(self.recorded_ns[collective as usize])
    }

    /// Returns the least own time of a collective over its ranks.
    pub(super) fn least_own_ns(&self, collective: u32) -> i64 {
        let parts = self.collectives.parts[collective as usize].iter();
        let own = parts.map(|(run, part)| self.own_ns(collective, *run, part.end_ns));
        own.min().unwrap_or(0)
    }

    /// Returns the last arrivals, by collective.
    pub(super) fn into_last(self) -> Vec<Arrival> {
        self.last
    }
}

fn wrong_by(clock: Option<(u32, i64)>, run: u32) -> i64 {
    match clock {
        Some((wrong, ns)) if wrong == run => ns,
        _ => 0,
    }
}

/// Returns when a run arrived at and left collectives, each with the collective.
fn parts(recorded: &Recorded) -> impl Iterator<Item = (Interval, u32)> {
    recorded.moments.iter().filter_map(|moment| {
        let Kind::Work(work) = &moment.kind else {
            return None;
        };
        let end_ns = moment.at_ns.saturating_add(work.length_ns);
        let part = (Interval::new(moment.at_ns, end_ns), work.collective);
        (work.collective != NONE).then_some(part)
    })
}
