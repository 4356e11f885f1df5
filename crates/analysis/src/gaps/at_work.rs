//! Says what other threads of a process were doing while its submitting thread was late: in which range, or in which call of the
//! API. Input are the stretches in which that thread was late, output a row for each of the other threads.
//!
//! Threads are looked at in moments, at most [`MOMENTS`] in a stretch: times are estimates. A thread that waits, for the GPU or by
//! the name of its range, is not at work.
//!
//! What this cannot know: threads that neither set ranges nor make calls, and whether the late thread waited for another.

use super::ThreadAtWork;
use crate::host_ranges::{HostRange, RangesByThread, outwards};
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
/// Parts of the texts of ranges in which a thread waits for something.
const WAITS: [&str; 7] = [
    ": wait",
    ": poll",
    ": select",
    ": sleep",
    "acquire",
    "Synchronize",
    "built-in method time.sleep",
];

/// The time of threads at work, by what they did.
#[derive(Debug, Default)]
pub(super) struct AtWork<'a> {
    times: HashMap<(HostThread, &'a str), i64>,
    moments: usize,
}

impl<'a> AtWork<'a> {
    /// Adds a stretch in which `thread` was late.
    pub(super) fn add(
        &mut self,
        timeline: &'a Timeline<'a>,
        ranges: &RangesByThread,
        thread: HostThread,
        late: Interval,
    ) {
        let ns = late.length_ns();
        if ns <= ROUND_TRIP_NS || self.moments >= MAX_MOMENTS {
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
            for other in &others {
                let call = host
                    .segments(*other, Interval::new(at_ns, at_ns + 1))
                    .first();
                if call.is_some_and(|call| call.class() == CallClass::Wait) {
                    continue;
                }
                let name = match (text_at(timeline, ranges.get(other), at_ns), call) {
                    (Some(text), _) if WAITS.iter().any(|word| text.contains(word)) => continue,
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

/// Returns the text of the innermost of a thread's ranges in which the thread was at a moment.
fn text_at<'a>(
    timeline: &Timeline<'a>,
    ranges: Option<&Vec<HostRange>>,
    at_ns: i64,
) -> Option<&'a str> {
    let ranges = ranges?;
    let begun = ranges.partition_point(|range| range.interval.start_ns <= at_ns);
    let covers = |place: &u32| ranges[*place as usize].interval.contains(at_ns);
    let mut places = outwards(ranges, begun.checked_sub(1)? as u32).filter(covers);
    let tables = &timeline.trace.tables;
    places.find_map(|place| {
        let label = tables.markers.label[ranges[place as usize].row as usize];
        let row = timeline.label_ids.get(label)?;
        Some(&*tables.labels.text[row])
    })
}
