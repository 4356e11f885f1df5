//! Finds the threads that build new code again and again: a thread is outside of calls for long, and then loads code.
//!
//! The calls of a thread are taken in periods, each up to a submission or a wait. A period *builds* if the thread loads code in it after at
//! least [`BUILD_NS`] outside of calls. A thread is a builder if at least [`BUILDS_LEAST`] of its periods build, and no more
//! others are as long outside of calls as half of the median of these: otherwise it pauses for that long whether it loads code or not.
//! Code that is loaded inside of a submission call, when it is first used, is not built. Of a thread that hands over no work, each
//! load ends a period: it builds for others.
//!
//! A time that is longer than [`BUILD_OUTLIER`] times the median is not taken for building unless the thread was seen at it: libraries
//! that load their code when they are first used do so after whatever the program did before.
//!
//! Samples and ranges of the thread decide first (`evidence.rs`): a thread that they show at something else is no builder, and
//! the code is built only after the last moment at which they show that.
//!
//! What this cannot know: what a thread without samples and ranges does outside of calls. It may read files before it loads
//! code, for as long each time.

mod evidence;

use super::pattern::Quartiles;
use evidence::{Evidence, ThreadEvidence};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::{CallClass, HostThread, HostThreads, Segment, Segments};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{BUILD_NS, BUILD_OUTLIER, BUILDS_LEAST};
use gapscope_trace::tables::HostCallKind;
use std::collections::{HashMap, HashSet};

/// The threads that build code again and again.
#[derive(Debug, Default)]
pub(super) struct Builders(HashMap<HostThread, Builder>);

/// A thread that builds code again and again.
#[derive(Debug)]
struct Builder {
    /// The times at which it loaded what it had built, in their order.
    loads: Vec<i64>,
    /// The evidence of its samples and ranges.
    evidence: ThreadEvidence,
    /// The longest time outside of calls that is taken for building where the thread was not seen at it.
    most_ns: i64,
}

/// The idle time in which code was built.
#[derive(Debug, Default)]
pub(super) struct BuildSums {
    /// How many gaps end with a load of what was built, and how long it was built in them.
    gaps: u64,
    total_ns: i64,
    /// The threads that built it.
    threads: HashSet<HostThread>,
}

/// New code that is built again and again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Built {
    /// How often it was loaded.
    pub(super) loads: u64,
    /// The idle time in which it was built.
    pub(super) total_ns: i64,
    /// That time for each load.
    pub(super) each_ns: i64,
}

impl BuildSums {
    /// Adds the time in which `thread` built code, as far as it is `inside`.
    pub(super) fn add(&mut self, thread: HostThread, building: Interval, inside: Interval) {
        let ns = building.intersection(inside).length_ns();
        if ns <= 0 {
            return;
        }
        self.gaps += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.threads.insert(thread);
    }

    pub(super) fn add_all(&mut self, other: BuildSums) {
        self.gaps += other.gaps;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.threads.extend(other.threads);
    }

    /// Returns what was built in a window; `None` where nothing was.
    pub(super) fn built(self, builders: &Builders, window: Interval) -> Option<Built> {
        let loads = self
            .threads
            .iter()
            .map(|thread| builders.loads_in(*thread, window));
        (self.gaps > 0).then(|| Built {
            loads: loads.map(|count| count as u64).sum(),
            total_ns: self.total_ns,
            each_ns: self.total_ns / self.gaps as i64,
        })
    }
}

/// A time that leads to a load of code.
#[derive(Debug, Clone, Copy)]
struct Building {
    /// How much of it is outside of calls.
    outside_ns: i64,
    before: Interval,
    load: Interval,
}

/// The periods of a thread.
#[derive(Debug, Default)]
struct Periods {
    /// The periods that build.
    building: Vec<Building>,
    /// The time outside of calls, of other periods in which that is at least half of [`BUILD_NS`].
    other_ns: Vec<i64>,
    /// The time outside of calls in the current period, when the period began, and what led to the last load in it.
    outside_ns: i64,
    from_ns: Option<i64>,
    last_load: Option<Building>,
    /// The end of the last call.
    last_end_ns: Option<i64>,
    /// When the thread loaded code, where that was its first call: how long it had built the code is not known.
    first_load_ns: Option<i64>,
}

impl Periods {
    /// Adds a call. Of a thread that hands over no work, each load ends a period.
    fn add(&mut self, segment: &Segment, loads: bool, submits: bool) {
        let start_ns = segment.interval.start_ns;
        if loads && self.last_end_ns.is_none() {
            self.first_load_ns = Some(start_ns);
        }
        let from_ns = self.last_end_ns.unwrap_or(start_ns);
        let outside = Interval::new(from_ns, segment.interval.start_ns);
        self.outside_ns = self.outside_ns.saturating_add(outside.length_ns());
        self.last_end_ns = Some(segment.interval.end_ns);
        if loads {
            self.last_load = Some(Building {
                outside_ns: self.outside_ns,
                before: Interval::new(self.from_ns.unwrap_or(from_ns), start_ns),
                load: segment.interval,
            });
        }
        if ends_period(segment) || (loads && !submits) {
            self.end();
            self.from_ns = None;
        } else {
            self.from_ns.get_or_insert(from_ns);
        }
    }

    fn end(&mut self) {
        let load = self.last_load.take();
        let outside_ns = std::mem::take(&mut self.outside_ns);
        match load.filter(|load| load.outside_ns >= BUILD_NS) {
            Some(load) => self.building.push(load),
            None if outside_ns >= BUILD_NS / 2 => self.other_ns.push(outside_ns),
            None => {}
        }
    }

    /// Returns true where the calls of the thread look as if it built code again and again.
    fn build(&mut self) -> bool {
        self.end();
        let lengths = self.building.iter().map(|building| building.outside_ns);
        let mut lengths: Vec<i64> = lengths.collect();
        let builds = lengths.len();
        let Some(quartiles) = Quartiles::new(&mut lengths) else {
            return false;
        };
        let is_long = |ns: &&i64| **ns >= quartiles.p50 / 2;
        let pauses = self.other_ns.iter().filter(is_long).count();
        builds as u64 >= BUILDS_LEAST && pauses <= builds
    }

    /// Returns the builder; `None` where samples or ranges show that the thread does something else than building.
    fn builder(self, thread: HostThread, evidence: &Evidence) -> Option<Builder> {
        let before: Vec<Interval> = self.building.iter().map(|of| of.before).collect();
        let loads: Vec<Interval> = self.building.iter().map(|of| of.load).collect();
        let evidence = evidence.of_thread(thread, &before, &loads)?;
        let mut lengths: Vec<i64> = self.building.iter().map(|of| of.outside_ns).collect();
        let median_ns = Quartiles::new(&mut lengths)?.p50;
        let first_ns = self.first_load_ns.into_iter();
        Some(Builder {
            loads: first_ns
                .chain(loads.iter().map(|load| load.start_ns))
                .collect(),
            evidence,
            most_ns: median_ns.saturating_mul(BUILD_OUTLIER),
        })
    }
}

impl Builders {
    pub(super) fn new(timeline: &Timeline) -> Builders {
        let host_threads = timeline.host_threads();
        let mut loading: HashMap<HostThread, (Periods, bool)> = HashMap::new();
        // Most programs load no code outside of submission calls.
        for (thread, segment) in host_threads.all_segments() {
            if loads(host_threads, &segment) {
                loading.entry(thread).or_default();
            }
        }
        if loading.is_empty() {
            return Builders::default();
        }
        for (thread, segment) in host_threads.all_segments() {
            if let Some((_, submits)) = loading.get_mut(&thread) {
                *submits |= segment.class() == CallClass::Submit;
            }
        }
        for (thread, segment) in host_threads.all_segments() {
            if let Some((periods, submits)) = loading.get_mut(&thread) {
                periods.add(&segment, loads(host_threads, &segment), *submits);
            }
        }
        loading.retain(|_, (periods, _)| periods.build());
        if loading.is_empty() {
            return Builders::default();
        }
        let evidence = Evidence::new(timeline, &loading.keys().copied().collect());
        let builders = (loading.into_iter()).filter_map(|(thread, (periods, _))| {
            Some((thread, periods.builder(thread, &evidence)?))
        });
        Builders(builders.collect())
    }

    /// Returns how often a thread loaded what it had built in a window.
    pub(super) fn loads_in(&self, thread: HostThread, window: Interval) -> usize {
        let loads = self
            .0
            .get(&thread)
            .map_or(&[][..], |builder| &builder.loads);
        let until = |at_ns| loads.partition_point(|load_ns| *load_ns < at_ns);
        until(window.end_ns).saturating_sub(until(window.start_ns))
    }

    /// Returns the time in `late` in which another thread built the code of its load, the segment `load`; `None` where it built
    /// none.
    pub(super) fn building_on(
        &self,
        host_threads: &HostThreads,
        other: HostThread,
        load: &Segment,
        late: Interval,
    ) -> Option<Interval> {
        let before = Interval::new(late.start_ns, load.interval.end_ns);
        self.building(
            host_threads,
            other,
            before,
            host_threads.segments(other, before),
        )
    }

    /// Returns the time before the last load of code in `late` in which `thread` built the code; `None` where it built none.
    /// `segments` are the thread's calls in that time.
    pub(super) fn building(
        &self,
        host_threads: &HostThreads,
        thread: HostThread,
        late: Interval,
        mut segments: Segments,
    ) -> Option<Interval> {
        let builder = self.0.get(&thread)?;
        // The calls before the last load are left.
        let last = segments.rfind(|segment| loads(host_threads, segment))?;
        let before = segments;
        let from_ns = before.clone().rev().find(ends_period);
        let from_ns = from_ns.map_or(late.start_ns, |call| call.interval.end_ns);
        let load_ns = last.interval.start_ns;
        let evidence = &builder.evidence;
        let until_load = (evidence.elsewhere).partition_point(|end_ns| *end_ns <= load_ns);
        let elsewhere_ns = until_load
            .checked_sub(1)
            .map(|last| evidence.elsewhere[last]);
        let from_ns = from_ns.max(elsewhere_ns.unwrap_or(from_ns));
        let building = Interval::new(from_ns, load_ns).intersection(late);
        let in_calls = before.map(|call| call.interval.intersection(building).length_ns());
        let outside_ns = building.length_ns() - in_calls.sum::<i64>();
        let is_usual = evidence.is_seen_building || outside_ns <= builder.most_ns;
        (outside_ns >= BUILD_NS && is_usual).then_some(building)
    }
}

/// Returns true for calls that load or compile code. Those that unload code or look a function up have the same kind.
fn loads(host_threads: &HostThreads, segment: &Segment) -> bool {
    use HostCallKind::{CreatePipelines, CreateShaderModule, LoadModule};
    let is_load = || match host_threads.function_name(segment.function) {
        Some(name) => !["Unload", "Destroy", "Release", "Get"]
            .iter()
            .any(|word| name.contains(word)),
        None => true,
    };
    match segment.call {
        CreatePipelines | CreateShaderModule => true,
        LoadModule => is_load(),
        _ => false,
    }
}

/// Returns true for calls with which a period ends.
fn ends_period(segment: &Segment) -> bool {
    matches!(segment.class(), CallClass::Submit | CallClass::Wait)
}
