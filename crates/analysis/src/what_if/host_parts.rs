//! Finds the host's time that a change to a cause of idle time, or to a place in the code, is about.
//!
//! | target | the time |
//! |---|---|
//! | a cause | what the thread that submits the work after a gap did in the part of the gap with this cause, without waits |
//! | code | of the time of a thread outside of calls, what ranges of this code cover (imports); or else, between each two calls, the share of its samples that have the place in their stack |

use super::change::{Code, Target};
use super::effects::HostParts;
use super::recorded::{Call, Kind, Recorded};
use crate::gaps::visit::visit_gaps_within;
use crate::gaps::{Cause, GapFinder};
use crate::range_name::frame_of_range;
use crate::stacks::{CodeFrame, Stacks};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::{Interval, union};
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;

/// Fewer samples say too little about a place in the code.
const MIN_SAMPLES: u64 = 20;

/// Returns the host's time that a change is about.
///
/// # Errors
/// A sentence without a full stop, where the trace cannot say it.
pub(super) fn find(
    finder: &GapFinder,
    recorded: &Recorded,
    target: &Target,
) -> Result<HostParts, String> {
    match target {
        Target::Idle(cause) => Ok(of_cause(finder, recorded, *cause)),
        Target::Code(code) => of_code(finder, recorded, code),
        _ => Ok(HostParts::default()),
    }
}

fn of_cause(finder: &GapFinder, recorded: &Recorded, cause: Cause) -> HostParts {
    let timeline = finder.timeline();
    let table = &timeline.trace.tables.submissions;
    let mut idle: FxHashMap<HostThread, Vec<Interval>> = FxHashMap::default();
    for gpu in 0..timeline.gpus.len() {
        visit_gaps_within(
            &finder.explainer,
            gpu,
            recorded.window,
            |_, [_, after], parts| {
                let row = timeline.submission_of(after) as usize;
                let process = table.process.get(row).copied();
                let thread = process.and_then(|p| HostThread::from_row(p, table.thread.at(row)));
                let parts = parts.iter().filter(|part| part.cause == cause);
                if let Some(thread) = thread {
                    idle.entry(thread)
                        .or_default()
                        .extend(parts.map(|part| part.interval()));
                }
            },
        );
    }
    idle.values_mut().for_each(union);
    let mut found = HostParts::default();
    each_call(recorded, |thread, at, own, call| {
        let Some(idle) = idle.get(&thread) else {
            return;
        };
        let during = Interval::new(own.end_ns, own.end_ns + call.length_ns);
        let (own_ns, call_ns) = (covered_ns(idle, own), covered_ns(idle, during));
        if own_ns > 0 {
            found.own_ns.insert(at, own_ns);
        }
        if call_ns > 0 {
            found.call_ns.insert(at, call_ns);
        }
    });
    found
}

fn of_code(finder: &GapFinder, recorded: &Recorded, code: &Code) -> Result<HostParts, String> {
    let timeline = finder.timeline();
    let ranged = of_ranges(timeline, recorded, code);
    if !ranged.own_ns.is_empty() {
        return Ok(ranged);
    }
    let tables = &timeline.trace.tables;
    let samples = finder.explainer.samples();
    let stacks = Stacks::new(tables);
    let mut known: FxHashMap<StackId, bool> = FxHashMap::default();
    let mut is_there = |row: u32| {
        let stack = tables.samples.stack.at(row as usize);
        stack.is_some_and(|stack| {
            let has = || stacks.frames(stack).iter().any(|frame| is_at(frame, code));
            *known.entry(stack).or_insert_with(has)
        })
    };
    let mut places: FxHashMap<PlaceInLoop, SampledPlace> = FxHashMap::default();
    let mut before: FxHashMap<HostThread, CallName> = FxHashMap::default();
    each_call(recorded, |thread, at, own, call| {
        let name = (call.function, call.call);
        let before = before.insert(thread, name);
        let place = places.entry((thread, before, name)).or_default();
        let rows = samples.sampled(thread, own);
        place.samples += rows.len() as u64;
        place.there += rows.iter().filter(|row| is_there(**row)).count() as u64;
        place.times.push((at, own.length_ns()));
    });
    let mut found = HostParts::default();
    let (mut count, mut all) = (0, 0);
    for place in places.values().filter(|place| place.there > 0) {
        count += place.there;
        all += place.samples;
        let share = place.there as f64 / place.samples as f64;
        let times = place.times.iter();
        let parts = times.map(|(at, ns)| (*at, (*ns as f64 * share).round() as i64));
        found.own_ns.extend(parts.filter(|(_, ns)| *ns > 0));
    }
    match count {
        0 => Err(format!(
            "no sample of the host's code has {} in its stack",
            code.text()
        )),
        count if count < MIN_SAMPLES => Err(format!(
            "only {count} samples have {} in their stack, and {MIN_SAMPLES} are the least that say how long it took: record \
             with a higher --stack-rate, or for longer",
            code.text()
        )),
        _ => {
            found.bounds = Some(bounds(count, all));
            Ok(found)
        }
    }
}

/// Returns the least and the greatest factor by which the time of code may differ from what `count` of `all` samples say: the bounds of the
/// 95 % interval of their share (Wilson, 1927), by the share.
fn bounds(count: u64, all: u64) -> [f64; 2] {
    /// The 97.5th percentile of the normal distribution.
    const Z: f64 = 1.96;
    let (all, share) = (all as f64, count as f64 / all as f64);
    let middle = share + Z * Z / (2.0 * all);
    let reach = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
    [-1.0, 1.0].map(|side| (middle + side * reach) / (1.0 + Z * Z / all) / share)
}

/// The function and the kind of a call.
type CallName = (u32, HostCallKind);

/// A place in the loop of a program: a thread between two calls, by their names. Its times are so many and so short that only some of
/// them have a sample, and what the samples of all of them show holds for each.
type PlaceInLoop = (HostThread, Option<CallName>, CallName);

/// The times of a thread at a place in its loop.
#[derive(Debug, Default)]
struct SampledPlace {
    /// The samples in all of them.
    samples: u64,
    /// Those with the code in their stack.
    there: u64,
    /// The place of the moment and the length of each time.
    times: Vec<(u32, i64)>,
}

/// Returns the time of threads outside of calls that ranges of code cover, as imports have them: `FILE(LINE): FUNCTION`.
fn of_ranges(timeline: &Timeline, recorded: &Recorded, code: &Code) -> HostParts {
    let tables = &timeline.trace.tables;
    let texts = tables.labels.text.iter();
    // A label of the program that has the name among its words is no code.
    let is_code = |text: &str, frame: &CodeFrame| {
        frame.file.is_some() || text.starts_with("<built-in ") || text == code.name
    };
    let meant: Vec<bool> = texts
        .map(|text| {
            let frame = frame_of_range(text);
            is_code(text, &frame) && is_at(&frame, code)
        })
        .collect();
    let markers = &tables.markers;
    let mut ranges: FxHashMap<HostThread, Vec<Interval>> = FxHashMap::default();
    for row in 0..markers.len() {
        let label = timeline.label_ids.row(markers.label[row]) as usize;
        if !meant.get(label).copied().unwrap_or_default() {
            continue;
        }
        let thread = HostThread::from_row(markers.process[row], markers.thread.at(row));
        let range = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row));
        if let (Some(thread), Some(range)) = (thread, range) {
            ranges.entry(thread).or_default().push(range);
        }
    }
    ranges.values_mut().for_each(union);
    let mut found = HostParts::default();
    each_call(recorded, |thread, at, own, _| {
        let ranges = ranges.get(&thread).map_or(&[][..], |ranges| ranges);
        let own_ns = covered_ns(ranges, own);
        if own_ns > 0 {
            found.own_ns.insert(at, own_ns);
        }
    });
    found
}

/// Returns how much of an interval a set of intervals covers.
fn covered_ns(set: &[Interval], interval: Interval) -> i64 {
    let from = set.partition_point(|part| part.end_ns <= interval.start_ns);
    let parts = set[from..].iter();
    let parts = parts.take_while(|part| part.start_ns < interval.end_ns);
    parts
        .map(|part| part.intersection(interval).length_ns())
        .sum()
}

/// Returns true where a path ends with the name of a file.
fn is_file(path: &str, name: &str) -> bool {
    let rest = path.strip_suffix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Returns true where the text of a function has the name as a whole word, such as `<built-in function NAME>` or `Class.NAME`.
fn is_function(function: &str, name: &str) -> bool {
    let is_in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    function.match_indices(name).any(|(at, _)| {
        let before = function[..at].chars().next_back();
        let after = function[at + name.len()..].chars().next();
        !is_in_word(before) && !is_in_word(after)
    })
}

/// Returns true where a frame lies at a place.
fn is_at(frame: &CodeFrame, code: &Code) -> bool {
    match code.line {
        Some(line) => {
            let file = frame.file.as_deref();
            frame.line == Some(line) && file.is_some_and(|file| is_file(file, &code.name))
        }
        None => {
            let function = frame.function.as_deref();
            function.is_some_and(|function| is_function(function, &code.name))
        }
    }
}

/// Calls a function with each call: its thread, its place among the moments, the time since the call before it, and the call.
fn each_call(recorded: &Recorded, mut visit: impl FnMut(HostThread, u32, Interval, &Call)) {
    for (moment, at) in recorded.moments.iter().zip(0u32..) {
        if let Kind::Call(call) = &moment.kind {
            let thread = recorded.threads[call.thread as usize];
            let own = Interval::new(moment.at_ns - call.own_ns, moment.at_ns);
            visit(thread, at, own, call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{bounds, is_function};

    #[test]
    fn few_samples_leave_much_open() {
        // By the tables of binom.test and of prop.test without continuity correction.
        let [low, high] = bounds(20, 20);
        assert!(
            (low - 0.8389).abs() < 1e-3 && (high - 1.0).abs() < 1e-3,
            "{low} {high}"
        );
        let [low, high] = bounds(500, 1000);
        assert!(
            (low - 0.9381).abs() < 1e-3 && (high - 1.0619).abs() < 1e-3,
            "{low} {high}"
        );
    }

    #[test]
    fn functions_are_named_by_whole_words() {
        for text in [
            "step",
            "Model.step",
            "train.py(3): step",
            "<built-in method step of X>",
        ] {
            assert!(is_function(text, "step"), "{text}");
        }
        for text in ["steps", "first_step", "footstep", ""] {
            assert!(!is_function(text, "step"), "{text}");
        }
    }
}
