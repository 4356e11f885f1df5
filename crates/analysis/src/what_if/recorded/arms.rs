//! Walks over the moments of a recorded run in their order and says of each by how much it came later than what it had to wait for.

use super::awaited::{Submitted, Wait};
use super::{
    Arm, EARLY_RETURN_NS, Facts, Kind, LEAST_PERCENTILE, Moment, OWN_TIME_OF_WAIT_NS, Recorded,
    Return, UsualDelays, WorkMoment,
};
use crate::gaps::waits::WaitOrder;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::{Interval, length_ns, union};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;

/// A delay of a queue that is longer than the usual one by so much, and is no launch latency, has a reason that the trace lacks.
const UNEXPLAINED_NS: i64 = 20_000;
/// A submission this long before the end of the work ahead of it did not hold its own work.
const SUBMITTED_AHEAD_NS: i64 = 20_000;

/// Work that starts so shortly before the end of the work ahead of it was started by that end, as by programmatic dependent launches. How far
/// these overlap on a GPU was not measured; planted traces have up to 3 µs. Work must have overlapped by less than half of that work, too.
const MAX_EARLY_START_NS: i64 = 5_000;

/// Of the waits for a full queue, so many of a hundred found the same number of submissions in it where that is the queue's size.
const SAME_DEPTH_PERCENT: usize = 90;
/// Fewer waits for a full queue may find the same number by chance.
const MIN_FULL_WAITS: usize = 10;

/// What the timeline says of submissions.
pub(super) struct Sources<'a> {
    timeline: &'a Timeline<'a>,
    order: &'a WaitOrder<'a>,
    slot_rows: &'a [u32],
    /// The slots of the submissions that each depends on, by slot.
    dependencies: FxHashMap<u32, Vec<u32>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        timeline: &'a Timeline<'a>,
        order: &'a WaitOrder<'a>,
        slot_rows: &'a [u32],
        slot_of_row: &FxHashMap<u32, u32>,
    ) -> Sources<'a> {
        let table = &timeline.trace.tables.dependencies;
        let mut dependencies: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let slot = |id| slot_of_row.get(&timeline.submission_ids.row(id)).copied();
        for row in 0..table.len() {
            let waits = slot(table.submission[row]);
            let awaited = table.waits_for.at(row).and_then(slot);
            if let (Some(waits), Some(awaited)) = (waits, awaited) {
                dependencies.entry(waits).or_default().push(awaited);
            }
        }
        Sources {
            timeline,
            order,
            slot_rows,
            dependencies,
        }
    }

    /// Returns the times in which the work of a slot ran, where they are known.
    fn ran(&self, slot: u32) -> Option<Interval> {
        let row = *self.slot_rows.get(slot as usize)?;
        self.timeline.submissions[row as usize].interval()
    }
}

/// The state of the recorded run while it is walked over.
struct State {
    /// The start and end of the last call of each thread, by thread.
    calls: Vec<Interval>,
    /// The last start and the last end of work of each queue, by queue.
    queues: Vec<Option<Interval>>,
    submitted: Submitted,
    /// The slot of each thread's last submission, by thread.
    last_slots: Vec<u32>,
    /// The recorded moment of each submission, by slot.
    sent_ns: Vec<i64>,
    /// True for slots of which work has started.
    has_started: Vec<bool>,
    /// The waits for a full queue: the place of the return, the queue, and by how many submissions the call's own one was behind
    /// that which ended last.
    full: Vec<(usize, u32, u32)>,
}

/// The moments at which a piece of work could have started, by arm.
type Ready = [Option<i64>; Arm::COUNT];

/// Adds the delays of all moments.
pub(super) fn add(recorded: &mut Recorded, sources: &Sources) {
    let mut moments = std::mem::take(&mut recorded.moments);
    let threads = recorded.threads.len();
    let start_ns = recorded.window.start_ns;
    let mut state = State {
        calls: vec![Interval::new(start_ns, start_ns); threads],
        queues: vec![None; recorded.queue_count],
        submitted: Submitted::new(
            sources
                .timeline
                .queues
                .iter()
                .map(|queue| queue.gpu)
                .collect(),
        ),
        last_slots: vec![NONE; threads],
        sent_ns: vec![i64::MIN; recorded.slot_count],
        has_started: vec![false; recorded.slot_count],
        full: Vec::new(),
    };
    let mut ready: Vec<Ready> = Vec::new();
    // The call of each thread that may turn out to be a wait.
    let mut calls: Vec<usize> = vec![usize::MAX; threads];
    let mut waits: Vec<(usize, usize)> = Vec::new();
    for (at, moment) in moments.iter_mut().enumerate() {
        let at_ns = moment.at_ns;
        match &mut moment.kind {
            Kind::Call(call) => {
                let thread = call.thread as usize;
                state.calls[thread] = Interval::new(at_ns, at_ns + call.length_ns);
                calls[thread] = at;
            }
            Kind::Submission(submission) => {
                let (slot, thread) = (submission.slot, submission.thread as usize);
                state.sent_ns[slot as usize] = at_ns;
                if let Some(call) = state.calls.get(thread) {
                    let is_in_call = at_ns <= call.end_ns;
                    let since_ns = [call.end_ns, call.start_ns][usize::from(is_in_call)];
                    submission.offset_ns = at_ns - since_ns;
                    submission.is_in_call = is_in_call;
                    state.last_slots[thread] = slot;
                }
                let row = sources.slot_rows[slot as usize] as usize;
                let table = &sources.timeline.trace.tables.submissions;
                match sources.ran(slot) {
                    Some(ran) => {
                        let queue = sources.timeline.submissions[row].queue;
                        let process = table.process[row];
                        (state.submitted).push(process, queue, slot, at_ns, ran);
                    }
                    None => recorded.facts.untimed_submissions += 1,
                }
            }
            Kind::Return(wait) => {
                let thread = wait.thread as usize;
                let depth = add_wait(recorded, &state, at_ns, wait);
                if let Some((queue, depth)) = depth {
                    state.full.push((at, queue, depth));
                }
                state.calls[thread].end_ns = at_ns;
                waits.push((at, calls[thread]));
            }
            Kind::Work(work) => ready.push(add_sources(recorded, &mut state, sources, at_ns, work)),
            Kind::Leave(_) => {}
        }
    }
    name_full_queues(&mut moments, &state.full, &mut recorded.facts);
    hold_waits(&mut moments, &waits);
    let least = Least::new(&moments, &ready, recorded.queue_count);
    let works = moments
        .iter_mut()
        .filter_map(|moment| match &mut moment.kind {
            Kind::Work(work) => Some((moment.at_ns, work)),
            _ => None,
        });
    let mut unexplained: Vec<Interval> = Vec::new();
    for ((at_ns, work), ready) in works.zip(&ready) {
        unexplained.extend(least.hold(at_ns, work, ready));
    }
    union(&mut unexplained);
    recorded.facts.unexplained_ns = length_ns(&unexplained);
    recorded.usual = usual(&moments);
    recorded.moments = moments;
}

/// Says what a wait waited for, and how long after the end of that it returned. For a full queue, returns the queue and the number of
/// submissions that it held.
fn add_wait(
    recorded: &mut Recorded,
    state: &State,
    at_ns: i64,
    wait: &mut Return,
) -> Option<(u32, u32)> {
    let thread = recorded.threads[wait.thread as usize];
    let start_ns = at_ns - wait.length_ns;
    let named = match wait.call {
        HostCallKind::CopyAndWait => {
            let slot = state.last_slots[wait.thread as usize];
            let is_its = (state.sent_ns.get(slot as usize)).is_some_and(|ns| *ns >= start_ns);
            [NONE, slot][usize::from(is_its)]
        }
        _ => wait.names,
    };
    let awaited = state.submitted.awaited(&Wait {
        call: wait.call,
        interval: Interval::new(start_ns, at_ns),
        queue: wait.queue,
        process: thread.process,
        named,
    });
    let facts = &mut recorded.facts;
    let is_impossible = |end_ns: &i64| *end_ns > at_ns.saturating_add(EARLY_RETURN_NS);
    let Some(end_ns) = awaited.end_ns.filter(|end_ns| !is_impossible(end_ns)) else {
        facts.unknown_wait_ns = facts.unknown_wait_ns.saturating_add(wait.length_ns);
        return None;
    };
    wait.held = end_ns > start_ns;
    wait.guessed = awaited.guessed;
    if wait.held {
        *[&mut facts.recorded, &mut facts.guessed][usize::from(wait.guessed)] += 1;
    }
    wait.wake_ns = at_ns - end_ns;
    wait.slots = recorded.push_slots(&awaited.slots);
    awaited.depth.filter(|_| wait.held)
}

/// Takes for known what the waits for a full queue waited for, where the queue held the same number of submissions at nearly each of
/// them: no other reason to wait would give that.
fn name_full_queues(moments: &mut [Moment], full: &[(usize, u32, u32)], facts: &mut Facts) {
    let mut depths: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    for (_, queue, depth) in full {
        depths.entry(*queue).or_default().push(i64::from(*depth));
    }
    let usual: FxHashMap<u32, i64> = depths
        .into_iter()
        .filter_map(|(queue, mut depths)| {
            let usual = median(&mut depths);
            let same = depths.iter().filter(|depth| **depth == usual).count();
            let is_same = same * 100 >= depths.len() * SAME_DEPTH_PERCENT;
            (is_same && depths.len() >= MIN_FULL_WAITS).then_some((queue, usual))
        })
        .collect();
    for (at, queue, depth) in full {
        if let Kind::Return(wait) = &mut moments[*at].kind
            && usual.get(queue) == Some(&i64::from(*depth))
        {
            wait.guessed = false;
            facts.guessed -= 1;
            facts.recorded += 1;
        }
    }
}

/// Takes from the calls that work held the time that they waited. Work that ended shortly before a call holds it too, since the
/// news of an end takes the usual time to wake up. `waits` has the places of the returns and of their calls.
fn hold_waits(moments: &mut [Moment], waits: &[(usize, usize)]) {
    let usual = wake(moments, median);
    for (at, called) in waits {
        let Kind::Return(wait) = &mut moments[*at].kind else {
            continue;
        };
        let is_known = !wait.slots.is_empty();
        let usual_ns = usual.get(&wait.call).copied().unwrap_or(0);
        wait.held |= is_known && wait.wake_ns <= usual_ns;
        if !wait.held {
            wait.wake_ns = wait.wake_ns.min(usual_ns).max(0);
            continue;
        }
        let own_ns = wait.length_ns.min(OWN_TIME_OF_WAIT_NS);
        if let Some(Kind::Call(call)) = moments.get_mut(*called).map(|moment| &mut moment.kind) {
            call.length_ns = call.length_ns.min(own_ns);
        }
    }
}

/// Returns a figure of the times from the end of work to the return of the call that it held, by kind of call.
fn wake(moments: &[Moment], figure: fn(&mut [i64]) -> i64) -> FxHashMap<HostCallKind, i64> {
    let mut wake: FxHashMap<HostCallKind, Vec<i64>> = FxHashMap::default();
    for moment in moments {
        if let Kind::Return(wait) = &moment.kind
            && wait.held
        {
            wake.entry(wait.call).or_default().push(wait.wake_ns);
        }
    }
    (wake.into_iter())
        .map(|(call, mut delays)| (call, figure(&mut delays)))
        .collect()
}

/// Says what a piece of work waited for, and when each of that was ready.
fn add_sources(
    recorded: &mut Recorded,
    state: &mut State,
    sources: &Sources,
    at_ns: i64,
    work: &mut WorkMoment,
) -> Ready {
    let mut ready: Ready = [None; Arm::COUNT];
    let end_ns = at_ns + work.length_ns;
    let queue = &mut state.queues[work.queue as usize];
    if let Some(before) = queue {
        let overlap_ns = before.end_ns.saturating_sub(at_ns);
        let before_ns = before.length_ns();
        work.overlaps = overlap_ns > MAX_EARLY_START_NS.min(before_ns / 2);
        let ns = [before.end_ns, before.start_ns][usize::from(work.overlaps)];
        ready[Arm::Queue as usize] = Some(ns);
    }
    let last_end_ns = queue.map_or(end_ns, |before| before.end_ns.max(end_ns));
    *queue = Some(Interval::new(at_ns, last_end_ns));
    let Some(started) = state.has_started.get_mut(work.slot as usize) else {
        return ready;
    };
    work.is_first = !std::mem::replace(started, true);
    if !work.is_first {
        return ready;
    }
    let sent_ns = state.sent_ns[work.slot as usize];
    // A start before its submission contradicts the order of time.
    if (i64::MIN + 1..=at_ns).contains(&sent_ns) {
        ready[Arm::Submission as usize] = Some(sent_ns);
    }
    let mut slots: Vec<u32> = Vec::new();
    let mut ended_ns: Option<i64> = None;
    let mut add = |slot: u32| {
        let ran = sources.ran(slot).filter(|ran| ran.end_ns <= at_ns);
        if let Some(ran) = ran.filter(|_| !slots.contains(&slot)) {
            slots.push(slot);
            ended_ns = ended_ns.max(Some(ran.end_ns));
        }
    };
    for slot in sources.dependencies.get(&work.slot).into_iter().flatten() {
        add(*slot);
    }
    let row = sources.slot_rows[work.slot as usize];
    let waits = sources.order.waits(row, at_ns, false);
    if let Some(last) = waits.last.filter(|last| last.queue != work.queue) {
        let process = sources.timeline.trace.tables.submissions.process[row as usize];
        let slot = state.submitted.ended_at(process, last.queue, last.end_ns);
        slot.into_iter().for_each(&mut add);
    }
    if let Some(ended_ns) = ended_ns {
        ready[Arm::Dependency as usize] = Some(ended_ns);
        recorded.facts.recorded += slots.len() as u64;
        work.depends_on = recorded.push_slots(&slots);
    }
    recorded.facts.recorded += 1;
    ready
}

/// The least usual delays by arm and queue.
struct Least {
    by_queue: Vec<[i64; Arm::COUNT]>,
    /// The usual gaps of queues, by queue.
    gaps: Vec<i64>,
}

impl Least {
    fn new(moments: &[Moment], ready: &[Ready], queue_count: usize) -> Least {
        let mut samples: Vec<[Vec<i64>; Arm::COUNT]> = vec![Default::default(); queue_count];
        let works = moments.iter().filter_map(|moment| match &moment.kind {
            Kind::Work(work) => Some((moment.at_ns, work)),
            _ => None,
        });
        for ((at_ns, work), ready) in works.zip(ready) {
            let samples = &mut samples[work.queue as usize];
            let [queue, sent, dependency] = *ready;
            let idle_since = queue.filter(|_| !work.overlaps);
            // Only where one arm alone can have held the work is the delay that of the arm.
            match (idle_since, sent, dependency) {
                (queue, Some(sent), None) if queue.is_none_or(|queue| queue <= sent) => {
                    samples[Arm::Submission as usize].push(at_ns - sent);
                }
                (Some(queue), sent, None)
                    if sent.is_none_or(|sent| sent + SUBMITTED_AHEAD_NS < queue) =>
                {
                    samples[Arm::Queue as usize].push(at_ns - queue);
                }
                (_, _, Some(ended)) if ready.iter().flatten().max() == Some(&ended) => {
                    samples[Arm::Dependency as usize].push(at_ns - ended);
                }
                _ => {}
            }
        }
        let mut gaps = Vec::new();
        let by_queue = samples.iter_mut().map(|samples| {
            gaps.push(median(&mut samples[Arm::Queue as usize]));
            std::array::from_fn(|arm| percentile(&mut samples[arm], LEAST_PERCENTILE))
        });
        let by_queue = by_queue.collect();
        Least { by_queue, gaps }
    }

    /// Gives each arm of a piece of work its delay: the recorded one to the arm that was ready last, the least usual one to others. Returns
    /// the idle time before the work if nothing in the trace explains it.
    fn hold(&self, at_ns: i64, work: &mut WorkMoment, ready: &Ready) -> Option<Interval> {
        let least = self.by_queue[work.queue as usize];
        let least = |arm: Arm| match arm {
            Arm::Queue if work.overlaps => 0,
            arm => least[arm as usize],
        };
        let arms = Arm::ALL.into_iter();
        let arms = arms.filter_map(|arm| Some((ready[arm as usize]?, arm)));
        let held = arms.clone().max_by_key(|(ns, arm)| ns + least(*arm));
        for (ns, arm) in arms {
            let delay_ns = at_ns - ns;
            let is_held = held.is_some_and(|(_, by)| by == arm);
            work.delays[arm as usize] = Some(match is_held {
                true => delay_ns,
                false => delay_ns.min(least(arm)),
            });
        }
        work.held_by = held.map(|(_, arm)| arm);
        let (since_ns, _) = held.filter(|(_, arm)| *arm == Arm::Queue && !work.overlaps)?;
        // Gaps that are always long have a reason, too, which the trace lacks.
        let usual_ns = self.gaps[work.queue as usize].clamp(0, UNEXPLAINED_NS);
        (at_ns - since_ns > usual_ns + UNEXPLAINED_NS).then(|| Interval::new(since_ns, at_ns))
    }
}

/// Returns a percentile by nearest rank, and 0 of nothing.
fn percentile(values: &mut [i64], percent: usize) -> i64 {
    match values.len() {
        0 => 0,
        count => *values.select_nth_unstable((count - 1) * percent / 100).1,
    }
}

/// Returns the mean delays of work by the arm that held it, and the mean times to wake up. Medians would lose the long ones, which
/// are a part of the run's time.
fn usual(moments: &[Moment]) -> UsualDelays {
    let mut arms: [Vec<i64>; Arm::COUNT] = Default::default();
    for moment in moments {
        if let Kind::Work(work) = &moment.kind {
            let held = (work.held_by).filter(|arm| *arm != Arm::Queue || !work.overlaps);
            if let Some(arm) = held {
                arms[arm as usize].extend(work.delays[arm as usize]);
            }
        }
    }
    UsualDelays {
        arms: arms.map(|mut delays| mean(&mut delays)),
        wake: wake(moments, mean),
    }
}

fn median(values: &mut [i64]) -> i64 {
    percentile(values, 50)
}

/// Returns the arithmetic mean, and 0 of nothing.
fn mean(values: &mut [i64]) -> i64 {
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    (sum / values.len().max(1) as i128) as i64
}
