//! Finds the warm-up of a recording: the part at the start that is not like the rest.
//!
//! Programs compile pipelines, and drivers compile kernels, when they are first used. Left in, this hides what the
//! program does afterwards. Signs of warm-up are calls that create pipelines or shader modules or load code after the
//! first GPU work, and first dispatches that took more than [`SLOW`] times the median of equal ones: of the same code with as many
//! workgroups. A larger launch takes longer for its size, and is no sign. Warm-up is the prefix of
//! the work window that holds the first signs: it begins only where a sign lies in the first [`FIRST_SHARE`] of the
//! window, goes on while the next sign is no farther away than the prefix is long, and ends where the next work
//! begins. It is left out only when
//! - it is at most [`MOST_SHARE`] of the window,
//! - at least [`LEAST_COMMAND_BUFFERS`] command buffers, or launches that are in none, start after it, and
//! - at most as many signs come after it as in it: a program that keeps compiling has no warm-up.
//!
//! What this cannot know: warm-up without such signs, such as that of caches, rising clocks, or a first iteration that does
//! other work.
//!
//! The timeline goes in; out come a [`WarmUp`], which says why warm-up was excluded or kept, and
//! [`FirstUses`], which finds the cold ones of several repetitions.

use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{self, Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{
    FIRST_SHARE, LEAST_COMMAND_BUFFERS, LEAST_DISPATCHES, MOST_SHARE, SLOW,
};
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::tables::{HostCallKind, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// The warm-up of a recording, if there is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct WarmUp {
    /// The part of the recording that is warm-up. Absent when none was found, or none that can safely be left out.
    pub excluded: Option<Interval>,
    /// Why it was excluded or kept, in one sentence.
    pub reason: String,
    /// Calls in it that created pipelines or shaders or loaded code.
    pub compile_calls: u64,
    /// Kernels whose first dispatch, in it, took much longer than the median of their dispatches of that size.
    pub slow_first_dispatches: u64,
    /// Command buffers that start in it, and launches that are in none.
    pub command_buffer_count: u64,
}

/// A sign that code was first used: a call that compiles or loads it, or a slow first dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sign {
    interval: Interval,
    /// The number of calls, 0 for a slow first dispatch.
    compile_calls: u64,
}

/// The first timed dispatch of a kernel, with how many are equal to it.
#[derive(Debug, Clone, Copy)]
struct FirstDispatch {
    interval: Interval,
    /// The number of workgroups; dispatches of unknown size count as equal to each other.
    groups: Option<u32>,
    /// The number of timed dispatches with as many workgroups, the first included.
    equal: u64,
    /// How many of these the first took more than [`SLOW`] times as long as.
    much_faster: u64,
}

impl FirstDispatch {
    /// Returns true where there are enough equal dispatches for a comparison.
    fn compares(&self) -> bool {
        self.equal >= LEAST_DISPATCHES
    }

    /// Returns true where the first took more than [`SLOW`] times the median of the equal ones.
    fn is_slow(&self) -> bool {
        self.compares() && 2 * self.much_faster >= self.equal
    }
}

/// Returns the first timed dispatch of each kernel that has one.
fn first_dispatches(timeline: &Timeline) -> Vec<FirstDispatch> {
    let mut firsts: Vec<Option<FirstDispatch>> = vec![None; timeline.trace.tables.kernels.len()];
    timeline.each_work(|work| {
        if work.kind() != WorkKind::Dispatch {
            return;
        }
        let row = work.row();
        let Some(first) = timeline.kernel_row(row).and_then(|row| firsts.get_mut(row)) else {
            return;
        };
        let groups = timeline.dispatches.groups(row);
        let first = first.get_or_insert(FirstDispatch {
            interval: work.interval,
            groups,
            equal: 0,
            much_faster: 0,
        });
        if groups == first.groups {
            let slow_ns = work.interval.length_ns().saturating_mul(SLOW);
            first.equal += 1;
            first.much_faster += u64::from(slow_ns < first.interval.length_ns());
        }
    });
    firsts.into_iter().flatten().collect()
}

/// Finds the warm-up of a recording.
pub fn warm_up(timeline: &Timeline) -> WarmUp {
    let kept = |reason: String| WarmUp {
        reason,
        ..WarmUp::default()
    };
    let Some(window) = timeline.work_window().filter(|window| !window.is_empty()) else {
        return kept("No GPU work has known times.".to_owned());
    };
    let firsts = first_dispatches(timeline);
    let signs = signs(timeline, &firsts, window);
    let first_ns = (window.length_ns() as f64 * FIRST_SHARE) as i64;
    let mut end_ns = window.start_ns;
    let mut taken = 0;
    for sign in &signs {
        let reach_ns = (end_ns - window.start_ns).max(if taken == 0 { first_ns } else { 0 });
        if sign.interval.start_ns > end_ns.saturating_add(reach_ns) {
            break;
        }
        end_ns = end_ns.max(sign.interval.end_ns);
        taken += 1;
    }
    if taken == 0 {
        return kept(none_found(timeline, &firsts, signs.len()));
    }
    let next = |gpu: &gapscope_timeline::Gpu| {
        let at = gpu
            .works
            .partition_point(|work| work.interval.start_ns < end_ns);
        gpu.works.get(at).map(|work| work.interval.start_ns)
    };
    let Some(cut_ns) = timeline.gpus.iter().filter_map(next).min() else {
        return kept(
            "Code is compiled or first run until the last GPU work: this is not warm-up."
                .to_owned(),
        );
    };
    let excluded = Interval::new(window.start_ns, cut_ns);
    let part = ratio(excluded.length_ns(), window.length_ns());
    let later = signs.len() - taken;
    let starts = |from_ns: i64| {
        let command_buffers = timeline.command_buffers.iter();
        let command_buffers = command_buffers.map(|t| (t.ran.first_start_ns, t.ran.last_end_ns));
        let launches = timeline.submissions.iter();
        let launches = launches.zip(&timeline.trace.tables.submissions.command_buffers);
        let launches = launches.filter(|(_, command_buffers)| **command_buffers == 0);
        command_buffers
            .chain(launches.map(|(t, _)| (t.first_start_ns, t.last_end_ns)))
            .filter(|(start_ns, end_ns)| start_ns <= end_ns && *start_ns >= from_ns)
            .count() as u64
    };
    let after = starts(cut_ns);
    if part > MOST_SHARE {
        return kept(format!(
            "Code is compiled or first run over the first {} of the time: too much to be warm-up.",
            Percent(part)
        ));
    }
    if after < LEAST_COMMAND_BUFFERS {
        return kept(format!(
            "Only {} after what looks like warm-up: too few to leave out the rest.",
            match after {
                1 => "1 command buffer or launch starts".to_owned(),
                _ => format!("{after} command buffers or launches start"),
            }
        ));
    }
    if later > taken {
        return kept(format!(
            "Code is compiled or first run throughout ({}, of these {taken} at the start): this is not warm-up.",
            quantity::count_of(signs.len() as u64, "time", "times")
        ));
    }
    let compile_calls = signs[..taken].iter().map(|sign| sign.compile_calls).sum();
    let slow_first_dispatches = signs[..taken]
        .iter()
        .filter(|sign| sign.compile_calls == 0)
        .count() as u64;
    WarmUp {
        excluded: Some(excluded),
        reason: format!(
            "The first {} ({}) are warm-up: {}.",
            Nanoseconds(excluded.length_ns()),
            Percent(part),
            seen(compile_calls, slow_first_dispatches)
        ),
        compile_calls,
        slow_first_dispatches,
        command_buffer_count: starts(window.start_ns) - after,
    }
}

/// Returns a sentence that the first of `signs` signs comes too late, or that there are no signs and why there may be
/// none.
fn none_found(timeline: &Timeline, firsts: &[FirstDispatch], signs: usize) -> String {
    let calls = !timeline.trace.tables.host_calls.call.is_empty();
    let enough = firsts.iter().any(FirstDispatch::compares);
    if signs > 0 {
        return format!(
            "No warm-up was found: code is compiled, loaded or first run after the GPU's first work ({}), but not in the first {} of the time.",
            quantity::count_of(signs as u64, "time", "times"),
            Percent(FIRST_SHARE),
        );
    }
    let reason = match (calls, enough) {
        (true, true) => {
            "No warm-up was found: no code is compiled or loaded after the GPU's first work, and first dispatches are no slower than others of their size."
        }
        (true, false) => {
            "No warm-up was found: no code is compiled or loaded after the GPU's first work. Whether first dispatches are slower is not known: too few have times."
        }
        (false, true) => {
            "No warm-up was found: first dispatches are no slower than others of their size. What the host compiled is not in the trace."
        }
        (false, false) => {
            "Whether there is warm-up is not known: the trace has no host calls, and too few times of dispatches."
        }
    };
    reason.to_owned()
}

/// The times at which code was compiled, loaded or first run.
#[derive(Debug, Clone, Default)]
pub struct FirstUses {
    /// The warm-up that was excluded.
    warm_up: Option<Interval>,
    /// When each sign was, in order of start.
    signs: Vec<Interval>,
}

impl FirstUses {
    /// Finds the first uses of code in a recording with this warm-up.
    pub fn new(timeline: &Timeline, warm_up: &WarmUp) -> FirstUses {
        let window = timeline.work_window().unwrap_or_default();
        let signs = signs(timeline, &first_dispatches(timeline), window).into_iter();
        FirstUses {
            warm_up: warm_up.excluded,
            signs: signs.map(|sign| sign.interval).collect(),
        }
    }

    /// Returns true where warm-up was not over at a time.
    pub(crate) fn is_warm_up(&self, start_ns: i64) -> bool {
        self.warm_up
            .is_some_and(|warm_up| start_ns < warm_up.end_ns)
    }

    /// Returns true where code was compiled, loaded or first run in an interval.
    pub(crate) fn any_in(&self, interval: Interval) -> bool {
        let inside = |sign: &Interval| !sign.intersection(interval).is_empty();
        self.signs.iter().any(inside)
    }
}

/// Describes the signs of a warm-up as the end of a sentence.
fn seen(compile_calls: u64, slow_first_dispatches: u64) -> String {
    let calls = match compile_calls {
        0 => None,
        1 => Some("one call compiles or loads code".to_owned()),
        n => Some(format!("{n} calls compile or load code")),
    };
    let dispatches = match slow_first_dispatches {
        0 => None,
        1 => Some(format!(
            "one kernel's first dispatch takes over {SLOW} times the median of that size"
        )),
        n => Some(format!(
            "the first dispatches of {n} kernels take over {SLOW} times the median of their size"
        )),
    };
    let all: Vec<String> = calls.into_iter().chain(dispatches).collect();
    all.join(", and ")
}

/// Returns the signs in `window`, in order of time.
fn signs(timeline: &Timeline, firsts: &[FirstDispatch], window: Interval) -> Vec<Sign> {
    let calls = &timeline.trace.tables.host_calls;
    let mut signs: Vec<Sign> = (0..calls.len())
        .filter(|row| {
            use HostCallKind::{CreatePipelines, CreateShaderModule, LoadModule};
            let call = calls.call[*row];
            matches!(call, CreatePipelines | CreateShaderModule | LoadModule)
        })
        .filter_map(|row| {
            let call = Interval::from_row(Some(calls.start_ns[row]), Some(calls.duration_ns[row]))?;
            let interval = call.intersection(window);
            (!interval.is_empty()).then_some(Sign {
                interval,
                compile_calls: u64::from(calls.count[row].max(1)),
            })
        })
        .collect();
    let slow = firsts.iter().filter(|first| first.is_slow());
    signs.extend(slow.map(|first| Sign {
        interval: first.interval,
        compile_calls: 0,
    }));
    signs.sort();
    signs
}
