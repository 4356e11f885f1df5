//! Decides the cause for which a device idles while the submitting thread is in a call. Most calls have the cause of their
//! class; for the others, facts about the whole program decide:
//!
//! - A call that allocates or frees memory, loads or unloads code, or any other call of the driver, may wait for the device (as
//!   `cudaFree` and `cuModuleUnload` do). It
//!   did where the device's work ended during the call and the call returned at once: at most [`SYNC_RETURN_NS`] later, having
//!   waited for longer than it went on. A call that took less than [`SYNC_TIMES`] times as long as the same function takes
//!   while the device is idle did not wait.
//! - A call that takes or gives an image waits for the display where the calls of its process come in a rhythm.
//!
//! What this cannot know: whether a call that fits the rule by chance waited. Calls that are long and unrelated to the device
//! seldom do, since few return so soon after the work.

use super::Cause;
use super::pattern::Quartiles;
use gapscope_timeline::Timeline;
use gapscope_timeline::host::{HostThread, Segment};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{
    REGULAR_LEAST_GAPS, REGULAR_SPREAD, SYNC_OWN_NS, SYNC_RETURN_NS, SYNC_TIMES,
};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{HostCallKind, Table};
use rustc_hash::FxHashMap;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// How many pieces of work before a moment are looked at for one that goes on then.
const MAX_OVERLAPPING: usize = 64;
/// How many pieces of work a search for a moment passes one by one.
const MAX_STEPS: usize = 64;

/// The facts about the program of a timeline that decide causes of calls.
pub(super) struct CallCauses<'a> {
    timeline: &'a Timeline<'a>,
    /// The processes that present images in a rhythm.
    in_rhythm: HashSet<ProcessId>,
    /// For each function that is called, by its index, true where its calls take their turn on a stream.
    is_async: Vec<bool>,
    /// The median length of the calls of each function that began while no device ran anything. Computed when it is
    /// first needed.
    own_ns: OnceLock<FxHashMap<FunctionKey, i64>>,
}

/// A function of a process: the kind of its calls, and the index of its name.
type FunctionKey = (ProcessId, HostCallKind, u32);

impl<'a> CallCauses<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>) -> CallCauses<'a> {
        CallCauses {
            timeline,
            in_rhythm: processes_in_rhythm(timeline),
            is_async: (timeline.host_threads().function_names())
                .map(|name| name.contains("Async"))
                .collect(),
            own_ns: OnceLock::new(),
        }
    }

    /// Returns the cause for which a device idles while `thread` is in a segment. The device's work ended at
    /// `gap_start_ns`, within `error_ns`.
    pub(super) fn cause(
        &self,
        thread: HostThread,
        segment: &Segment,
        gap_start_ns: i64,
        error_ns: i64,
    ) -> Cause {
        use HostCallKind::{AcquireImage, Present, WaitPresent};
        match segment.call {
            _ if self.waited(thread, segment, gap_start_ns, error_ns) => Cause::AfterHostWait,
            AcquireImage | Present | WaitPresent if self.in_rhythm.contains(&thread.process) => {
                Cause::Display
            }
            _ => Cause::in_segment(segment),
        }
    }

    /// Returns true where a call that is no wait by its kind waited for the work that ended at `gap_start_ns`.
    pub(super) fn waited(
        &self,
        thread: HostThread,
        segment: &Segment,
        gap_start_ns: i64,
        error_ns: i64,
    ) -> bool {
        let before_ns = gap_start_ns.saturating_sub(segment.since_ns);
        let after_ns = segment.interval.end_ns.saturating_sub(gap_start_ns);
        if segment.waits
            || !self.may_wait(segment)
            || before_ns <= 0
            || after_ns > SYNC_RETURN_NS.saturating_add(error_ns).min(before_ns)
        {
            return false;
        }
        let own_ns = (self.own_ns.get_or_init(|| self.measure_own_ns())).get(&(
            thread.process,
            segment.call,
            segment.function,
        ));
        let own_ns = own_ns.copied().unwrap_or(0).max(SYNC_OWN_NS);
        let least_ns = own_ns as f64 * SYNC_TIMES;
        before_ns.saturating_add(after_ns) as f64 >= least_ns
    }

    /// Returns for each function the median length of its calls that began while no device ran anything.
    fn measure_own_ns(&self) -> FxHashMap<FunctionKey, i64> {
        let mut lengths: FxHashMap<FunctionKey, Vec<i64>> = FxHashMap::default();
        // The segments of a thread are in order of time.
        let mut begun = vec![0; self.timeline.gpus.len()];
        for (thread, segment) in self.timeline.host_threads().all_segments() {
            if self.may_wait(&segment) && !self.runs_at(segment.since_ns, &mut begun) {
                let key = (thread.process, segment.call, segment.function);
                let length_ns = segment.interval.end_ns.saturating_sub(segment.since_ns);
                lengths.entry(key).or_default().push(length_ns);
            }
        }
        let medians = lengths.into_iter().map(|(key, mut lengths)| {
            let median = Quartiles::new(&mut lengths).map_or(0, |quartiles| quartiles.p50);
            (key, median)
        });
        medians.collect()
    }

    /// Returns true where a device runs something at a moment. `begun` has the number of pieces of work of each device that
    /// had begun at the moment of the call before, from where the search goes on.
    fn runs_at(&self, at_ns: i64, begun: &mut [usize]) -> bool {
        self.timeline.gpus.iter().zip(begun).any(|(gpu, begun)| {
            let works = &gpu.works;
            let has_begun =
                |at: usize| (works.get(at)).is_some_and(|work| work.interval.start_ns <= at_ns);
            let before = *begun;
            let mut next = (before..before + MAX_STEPS).filter(|at| !has_begun(*at));
            let is_later = before == 0 || has_begun(before - 1);
            *begun = (next.next().filter(|_| is_later))
                .unwrap_or_else(|| works.partition_point(|work| work.interval.start_ns <= at_ns));
            let mut last = works.range(begun.saturating_sub(MAX_OVERLAPPING)..*begun);
            last.any(|work| work.interval.end_ns > at_ns)
        })
    }

    /// Returns true where a segment is the end of a single call that may wait for the device although its kind does not say so.
    /// Calls that take their turn on a stream, such as `cudaFreeAsync`, never do.
    fn may_wait(&self, segment: &Segment) -> bool {
        use HostCallKind::{
            AcquireImage, AllocateMemory, FreeMemory, LoadModule, OtherCall, Present, WaitPresent,
        };
        let kinds = [
            AllocateMemory,
            FreeMemory,
            LoadModule,
            OtherCall,
            AcquireImage,
            Present,
            WaitPresent,
        ];
        segment.is_last
            && segment.count <= 1
            && kinds.contains(&segment.call)
            && !self
                .is_async
                .get(segment.function as usize)
                .is_some_and(|is| *is)
    }
}

/// Returns the processes whose calls that take images, or whose calls that give them to the display, return in a rhythm.
fn processes_in_rhythm(timeline: &Timeline) -> HashSet<ProcessId> {
    let calls = &timeline.trace.tables.host_calls;
    let mut returns: HashMap<(ProcessId, HostCallKind), Vec<i64>> = HashMap::new();
    for row in 0..calls.len() {
        let call = calls.call[row];
        if matches!(call, HostCallKind::AcquireImage | HostCallKind::Present) {
            let end_ns = calls.start_ns[row].saturating_add(calls.duration_ns[row]);
            let of_process = returns.entry((calls.process[row], call)).or_default();
            of_process.push(end_ns);
        }
    }
    let in_rhythm = returns.into_iter().filter_map(|((process, _), mut ends)| {
        ends.sort_unstable();
        let mut apart: Vec<i64> = ends
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]).min(1 << 60))
            .collect();
        let quartiles = Quartiles::new(&mut apart)?;
        let is_regular = apart.len() as u64 >= REGULAR_LEAST_GAPS
            && ratio(quartiles.spread(), quartiles.p50) <= REGULAR_SPREAD;
        is_regular.then_some(process)
    });
    in_rhythm.collect()
}
