//! Finds the threads that build new code again and again: a thread is outside of calls for long, and then loads code.
//!
//! The calls of a thread are taken in periods, each up to a submission or a wait. A period *builds* if the thread loads code in it after at
//! least [`BUILD_NS`] outside of calls. A thread is a builder if at least [`BUILDS_LEAST`] of its periods build, and no more
//! others are as long outside of calls as half of the median of these: otherwise it pauses for that long whether it loads code or not.
//! Code that is loaded inside of a submission call, when it is first used, is not built.
//!
//! What this cannot know: what a thread does outside of calls. It may read files before it loads code, for as long each time.

use super::pattern::Quartiles;
use gapscope_timeline::host::{CallClass, HostThread, HostThreads, Segment};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{BUILD_NS, BUILDS_LEAST};
use gapscope_trace::tables::HostCallKind;
use std::collections::{HashMap, HashSet};

/// The threads that build code again and again.
#[derive(Debug, Default)]
pub(super) struct Builders(HashSet<HostThread>);

/// The periods of a thread.
#[derive(Debug, Default)]
struct Periods {
    /// The time outside of calls before the last load, of periods that build.
    building_ns: Vec<i64>,
    /// The time outside of calls, of other periods in which that is at least half of [`BUILD_NS`].
    other_ns: Vec<i64>,
    /// The time outside of calls in the current period, and that before the last load in it.
    outside_ns: i64,
    before_load_ns: Option<i64>,
    /// The end of the last call.
    last_end_ns: Option<i64>,
}

impl Periods {
    fn add(&mut self, segment: &Segment) {
        let from_ns = self.last_end_ns.unwrap_or(segment.interval.start_ns);
        let outside = Interval::new(from_ns, segment.interval.start_ns);
        self.outside_ns = self.outside_ns.saturating_add(outside.length_ns());
        self.last_end_ns = Some(segment.interval.end_ns);
        if loads(segment) {
            self.before_load_ns = Some(self.outside_ns);
        } else if ends_period(segment) {
            self.end();
        }
    }

    fn end(&mut self) {
        let before_ns = self.before_load_ns.take().unwrap_or(0);
        let outside_ns = std::mem::take(&mut self.outside_ns);
        if before_ns >= BUILD_NS {
            self.building_ns.push(before_ns);
        } else if outside_ns >= BUILD_NS / 2 {
            self.other_ns.push(outside_ns);
        }
    }

    fn are_a_builders(mut self) -> bool {
        self.end();
        let builds = self.building_ns.len();
        let Some(quartiles) = Quartiles::new(&mut self.building_ns) else {
            return false;
        };
        let is_long = |ns: &&i64| **ns >= quartiles.p50 / 2;
        builds as u64 >= BUILDS_LEAST && self.other_ns.iter().filter(is_long).count() <= builds
    }
}

impl Builders {
    pub(super) fn new(host_threads: &HostThreads) -> Builders {
        let mut loading: HashMap<HostThread, Periods> = HashMap::new();
        // Most programs load no code outside of submission calls.
        for (thread, segment) in host_threads.all_segments() {
            if loads(segment) {
                loading.entry(thread).or_default();
            }
        }
        if loading.is_empty() {
            return Builders::default();
        }
        for (thread, segment) in host_threads.all_segments() {
            if let Some(periods) = loading.get_mut(&thread) {
                periods.add(segment);
            }
        }
        let builders = (loading.into_iter())
            .filter_map(|(thread, periods)| periods.are_a_builders().then_some(thread));
        Builders(builders.collect())
    }

    /// Returns the time before the last load of code in `late` in which `thread` built the code; `None` where it built none.
    /// `segments` are the thread's calls in that time.
    pub(super) fn building(
        &self,
        thread: HostThread,
        late: Interval,
        segments: &[Segment],
    ) -> Option<Interval> {
        if !self.0.contains(&thread) {
            return None;
        }
        let last = segments.iter().rposition(loads)?;
        let before = segments[..last].iter();
        let from_ns = before.clone().rev().find(|call| ends_period(call));
        let from_ns = from_ns.map_or(late.start_ns, |call| call.interval.end_ns);
        let building = Interval::new(from_ns, segments[last].interval.start_ns).intersection(late);
        let in_calls = before.map(|call| call.interval.intersection(building).length_ns());
        let outside_ns = building.length_ns() - in_calls.sum::<i64>();
        (outside_ns >= BUILD_NS).then_some(building)
    }
}

/// Returns true for calls that load or compile code.
fn loads(segment: &Segment) -> bool {
    use HostCallKind::{CreatePipelines, CreateShaderModule, LoadModule};
    matches!(
        segment.call,
        LoadModule | CreatePipelines | CreateShaderModule
    )
}

/// Returns true for calls with which a period ends.
fn ends_period(segment: &Segment) -> bool {
    matches!(segment.class(), CallClass::Submit | CallClass::Wait)
}
