//! Says what other threads of a process were doing while its submitting thread was late: in which range, or in which call of the
//! API. Input are the stretches in which that thread was late, output a row for each of the other threads.
//!
//! Threads are looked at in moments, at most [`MOMENTS`] in a stretch: times are estimates. A thread that waits, for the GPU or by
//! the name of its range, is not at work. Neither is one that has done nothing since the late thread began a piece of
//! PyTorch's backward pass: it asked for that pass and waits for its end.
//!
//! What this cannot know: threads that neither set ranges nor make calls, and whether the late thread waited for another.

use super::ThreadAtWork;
use crate::host_ranges::{RangesByThread, ThreadRanges};
use crate::range_name::frame_of_range;
use crate::waited_for::WaitedFor;
use gapscope_timeline::Timeline;
use gapscope_timeline::host::{CallClass, HostThread};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::ROUND_TRIP_NS;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// The most moments of a stretch at which other threads are looked at.
const MOMENTS: i64 = 16;
/// The most moments of all stretches.
const MAX_MOMENTS: usize = 1 << 16;
/// A part of the names of ranges in which a thread waits for the GPU.
const SYNCHRONIZE: &str = "Synchronize";
/// The beginning of the names of ranges in which a thread of PyTorch runs a piece of the backward pass, for which the thread that asked for
/// the pass waits.
const BACKWARD: &str = "autograd::engine::evaluate_function";
/// The most ranges of a thread that are looked at for the latest piece of the backward pass.
const MAX_LOOKED_AT: usize = 256;

/// The time of threads at work, by what they did.
#[derive(Debug, Default)]
pub(super) struct AtWork<'a> {
    times: HashMap<(HostThread, &'a str), i64>,
    moments: usize,
}

impl<'a> AtWork<'a> {
    /// Returns true where a stretch is long enough to be looked at.
    pub(super) fn takes(late: Interval) -> bool {
        late.length_ns() > ROUND_TRIP_NS
    }

    /// Adds a stretch in which `thread` was late.
    pub(super) fn add(
        &mut self,
        timeline: &'a Timeline<'a>,
        ranges: &RangesByThread,
        thread: HostThread,
        late: Interval,
    ) {
        let ns = late.length_ns();
        if !AtWork::takes(late) || self.moments >= MAX_MOMENTS {
            return;
        }
        let host = timeline.host_threads();
        let others: BTreeSet<HostThread> =
            (ranges.keys().copied().chain(host.other_threads(thread)))
                .filter(|other| other.process == thread.process && *other != thread)
                .collect();
        if others.is_empty() {
            return;
        }
        let moments = (ns / ROUND_TRIP_NS).clamp(1, MOMENTS);
        for moment in 0..moments {
            self.moments += 1;
            let at_ns = late.start_ns + ns / moments * moment + ns / moments / 2;
            let backward_ns = backward_ns(timeline, ranges.get(&thread), at_ns);
            for other in &others {
                let call = host
                    .segments(*other, Interval::new(at_ns, at_ns + 1))
                    .next();
                if call.is_some_and(|call| call.class() == CallClass::Wait) {
                    continue;
                }
                let begun_ns = begun_ns(ranges.get(other), at_ns);
                if call.is_none()
                    && backward_ns.is_some_and(|ns| begun_ns.is_some_and(|begun_ns| begun_ns <= ns))
                {
                    continue;
                }
                let name = match (text_at(timeline, ranges.get(other), at_ns), call) {
                    (Some(text), _) if is_wait(text) => continue,
                    (Some(text), _) => text,
                    (None, Some(call)) => {
                        (host.function_name(call.function)).unwrap_or(call.call.as_str())
                    }
                    (None, None) => continue,
                };
                *self.times.entry((*other, name)).or_default() += ns / moments;
            }
        }
    }

    /// Returns a row for each thread, those that were at work for longest first.
    pub(super) fn rows(&self, timeline: &Timeline) -> Vec<ThreadAtWork> {
        let mut rows: HashMap<HostThread, (i64, Reverse<&str>, i64)> = HashMap::new();
        for ((thread, name), ns) in &self.times {
            let (most_ns, most, total_ns) = rows.entry(*thread).or_insert((0, Reverse(""), 0));
            *total_ns = total_ns.saturating_add(*ns);
            if (*ns, Reverse(*name)) > (*most_ns, *most) || *most_ns == 0 {
                (*most_ns, *most) = (*ns, Reverse(*name));
            }
        }
        let mut rows: Vec<ThreadAtWork> = (rows.into_iter())
            .map(|(thread, (_, Reverse(name), total_ns))| ThreadAtWork {
                process_id: thread.process,
                thread: thread.thread,
                thread_name: thread.name(&timeline.trace.manifest),
                total_ns,
                mostly_in: name.to_owned(),
            })
            .collect();
        rows.sort_by_key(|row| (Reverse(row.total_ns), row.process_id, row.thread));
        rows
    }
}

/// Returns true where a thread waits in a range with a name.
fn is_wait(text: &str) -> bool {
    text.contains(SYNCHRONIZE) || WaitedFor::by_name(&[frame_of_range(text)]).is_some()
}

/// Returns the start of the latest of a thread's ranges that had begun at a moment.
fn begun_ns(ranges: Option<&ThreadRanges>, at_ns: i64) -> Option<i64> {
    let ranges = ranges?;
    let last = ranges.begun(at_ns).checked_sub(1)?;
    Some(ranges.interval(last).start_ns)
}

/// Returns when a thread began the latest piece of PyTorch's backward pass before a moment.
fn backward_ns(timeline: &Timeline, ranges: Option<&ThreadRanges>, at_ns: i64) -> Option<i64> {
    let ranges = ranges?;
    let latest = (0..ranges.begun(at_ns)).rev().take(MAX_LOOKED_AT);
    let is_backward = |text: &str| text.starts_with(BACKWARD);
    let mut pieces =
        latest.filter(|place| text_of(timeline, ranges, *place).is_some_and(is_backward));
    Some(ranges.interval(pieces.next()?).start_ns)
}

/// Returns the text of a range.
fn text_of<'a>(timeline: &Timeline<'a>, ranges: &ThreadRanges, place: u32) -> Option<&'a str> {
    let tables = &timeline.trace.tables;
    let row = timeline.label_ids.get(ranges.label(place))?;
    Some(&*tables.labels.text[row])
}

/// Returns the text of the innermost of a thread's ranges in which the thread was at a moment.
fn text_at<'a>(
    timeline: &Timeline<'a>,
    ranges: Option<&ThreadRanges>,
    at_ns: i64,
) -> Option<&'a str> {
    let ranges = ranges?;
    let last = ranges.begun(at_ns).checked_sub(1)?;
    let covers = |place: &u32| ranges.interval(*place).contains(at_ns);
    let mut places = ranges.outwards(last).filter(covers);
    places.find_map(|place| text_of(timeline, ranges, place))
}
