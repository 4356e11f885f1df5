//! Chooses the advice on each cause of idle time that fits what was recorded. All advice is chosen here.
//!
//! The usual advice, which suits most programs, is [`CauseFacts::advice`](super::CauseFacts::advice). [`advice`] is
//! called once the idle time of the whole window is known.

use super::{Cause, IdleTime, UnknownTotal};
use crate::command_buffers::mean_dispatches;
use gapscope_timeline::quantity::{self, ratio};
use gapscope_timeline::thresholds::{COMPILED_SHARE, REASON_SHARE, SEVERAL};
use gapscope_timeline::vocabulary::{Vocabulary, Words, program};
use gapscope_timeline::{Timeline, is_work};
use gapscope_trace::manifest::{Api, Manifest};
use gapscope_trace::tables::SubmissionKind;

/// Returns the advice on each cause in `idle_time.causes`, in their order.
pub(crate) fn advice(timeline: &Timeline, idle_time: &IdleTime) -> Vec<String> {
    let manifest = &timeline.trace.manifest;
    let vocabulary = Vocabulary::new(manifest);
    let [graphs, others] = [true, false].map(|graphs| LaunchTotals::new(timeline, graphs));
    let adviser = Adviser {
        words: *vocabulary.words(),
        idle_time,
        has_losses: !manifest.losses.is_empty(),
        mean_dispatches: mean_dispatches(timeline),
        mean_command_buffers: mean_command_buffers(timeline),
        most_are_graphs: graphs.count > 0 && graphs.count >= others.count,
        most_calls_are_of_graphs: graphs.count > 0 && graphs.calls_ns >= others.calls_ns,
        is_python: is_python(manifest),
    };
    (idle_time.causes.iter())
        .map(|total| adviser.advice(total.cause, total.total_ns))
        .collect()
}

/// The facts about a recording that its advice must fit.
struct Adviser<'a> {
    words: Words,
    idle_time: &'a IdleTime,
    /// True where something was not recorded.
    has_losses: bool,
    /// The mean number of dispatches in a command buffer; `None` without command buffers.
    mean_dispatches: Option<f64>,
    /// The mean number of command buffers in a submission that has some.
    mean_command_buffers: f64,
    /// True where at least half of the launches are of graphs (CUDA).
    most_are_graphs: bool,
    /// True where at least half of the time of launch calls is spent on graphs.
    most_calls_are_of_graphs: bool,
    /// True where a process that uses a GPU runs Python.
    is_python: bool,
}

impl Adviser<'_> {
    /// Returns the advice on a cause, whose idle time is `total_ns`.
    fn advice(&self, cause: Cause, total_ns: i64) -> String {
        let usual = cause.facts(self.words.api).advice;
        match (cause, self.words.api) {
            (Cause::HostCall, _) => self.for_calls(usual),
            (Cause::HostLate, _) => self.for_a_late_host(usual, total_ns),
            (Cause::HostFunction, _) => self.for_host_functions(usual, total_ns),
            (Cause::SubmitCall, Api::Cuda | Api::Hip) => self.for_launch_calls(usual),
            (Cause::GraphLaunch, _) => self.for_graphs(usual),
            (Cause::Unknown, _) => self.for_the_unknown(usual, total_ns),
            (Cause::LaunchLatency, Api::Cuda | Api::Hip) if self.most_are_graphs => {
                "the device's own time to start work: fewer and larger kernels".to_owned()
            }
            (Cause::SubmitCall, _) if self.mean_command_buffers >= SEVERAL => format!(
                "{} are in each submission already: submit less often, or from a thread of its own",
                self.command_buffers(),
            ),
            (Cause::LaunchLatency, _) if self.mean_command_buffers >= SEVERAL => format!(
                "the device's own time to start work; {} are in each submission already: submit the next before the last has ended",
                self.command_buffers(),
            ),
            _ => usual.to_owned(),
        }
    }

    /// Returns the mean number of command buffers in a submission as text.
    fn command_buffers(&self) -> String {
        let many = self.words.command_buffer.many;
        format!("{:.1} {many}", self.mean_command_buffers)
    }

    fn for_calls(&self, usual: &str) -> String {
        match self.idle_time.host_was(Cause::HostCall) {
            Some(doing) => {
                format!("it was mostly {doing}: call it before the loop, or less often")
            }
            None => usual.to_owned(),
        }
    }

    fn for_launch_calls(&self, usual: &str) -> String {
        match self.mean_dispatches {
            Some(kernels) if self.most_calls_are_of_graphs => format!(
                "most of it launches graphs, of {kernels:.1} kernels each: launch the next before the last has ended"
            ),
            Some(_) => "put the launches that are in no graph into one, or fuse kernels".to_owned(),
            None => usual.to_owned(),
        }
    }

    fn for_graphs(&self, usual: &str) -> String {
        match self.mean_dispatches {
            Some(kernels) if kernels >= SEVERAL => format!(
                "each graph has {kernels:.1} kernels already: launch the next before the last has ended"
            ),
            _ => usual.to_owned(),
        }
    }

    /// Returns the advice where the host had not submitted: what to do, and, as shares of `total_ns`, how much of it
    /// other threads compiled or is not known.
    fn for_a_late_host(&self, usual: &str, total_ns: i64) -> String {
        let what_to_do = match self.words.api {
            Api::Cuda | Api::Hip if self.most_are_graphs => "launch ahead",
            Api::Cuda | Api::Hip => "launch ahead, or put many launches into a graph",
            Api::Vulkan | Api::Metal | Api::Unknown => "prepare work ahead, or submit more at once",
        };
        let known = match self.words.api {
            Api::Cuda | Api::Hip if self.is_python => {
                format!("the launching thread ran its own code, such as Python: {what_to_do}")
            }
            Api::Cuda | Api::Hip => format!("the launching thread ran its own code: {what_to_do}"),
            Api::Vulkan | Api::Metal | Api::Unknown => usual.to_owned(),
        };
        let known = match self.idle_time.late_while_compiling_ns {
            ns if ratio(ns, total_ns) >= COMPILED_SHARE => format!(
                "in {} of it other threads compiled or loaded code, for which the submitting thread may have waited: {}; else {known}",
                quantity::share_of(ns, total_ns),
                Cause::HostCompile.facts(self.words.api).advice,
            ),
            _ => known,
        };
        let submits = self.words.submits;
        let unknown = format!("it is not known which thread {submits}, or what it did");
        match self.idle_time.unknown_host_ns {
            0 => known,
            ns if ns < total_ns => {
                let share = quantity::share_of(ns, total_ns);
                format!("{known}; in {share} of it {unknown}")
            }
            _ => format!("{unknown}: {what_to_do}"),
        }
    }

    /// Returns the usual advice, with the share of `total_ns` in which it is not known when functions ran.
    fn for_host_functions(&self, usual: &str, total_ns: i64) -> String {
        const BOUND: &str = "as it is not recorded when they ran";
        match self.idle_time.untimed_host_function_ns {
            0 => usual.to_owned(),
            ns if ns < total_ns => {
                let share = quantity::share_of(ns, total_ns);
                format!("{usual}; at most so long for {share} of it, {BOUND}")
            }
            _ => format!("{usual}; at most so long, {BOUND}"),
        }
    }

    /// Returns what the cause may have been, by the greatest reasons for which it is not known.
    fn for_the_unknown(&self, usual: &str, total_ns: i64) -> String {
        let reasons = self.idle_time.unknown_reasons.iter();
        let counts = |total: &&UnknownTotal| ratio(total.total_ns, total_ns) >= REASON_SHARE;
        let reasons: Vec<&UnknownTotal> = reasons.filter(counts).collect();
        let text = |total: &UnknownTotal| total.reason.text(self.words.api);
        let mut advice = match reasons.as_slice() {
            [] => usual.to_owned(),
            [only] => text(only),
            several => (several.iter())
                .map(|total| {
                    let share = quantity::share_of(total.total_ns, total_ns);
                    format!("in {share} of it {}", text(total))
                })
                .collect::<Vec<_>>()
                .join("; "),
        };
        if self.has_losses && !reasons.is_empty() {
            advice += &format!("; {usual}");
        }
        advice
    }
}

/// Sums over the launches of graphs, or over all other launches.
struct LaunchTotals {
    count: u64,
    /// The time that the host spent in the launch calls.
    calls_ns: i64,
}

impl LaunchTotals {
    /// Adds up the launches of graphs, or all others.
    fn new(timeline: &Timeline, graphs: bool) -> LaunchTotals {
        let rows = &timeline.trace.tables.submissions;
        let calls = rows.kind.iter().zip(&rows.duration_ns);
        let calls = calls.filter(|(kind, _)| is_work(**kind));
        let calls = calls.filter(|(kind, _)| (**kind == SubmissionKind::Graph) == graphs);
        calls.fold(
            LaunchTotals {
                count: 0,
                calls_ns: 0,
            },
            |sum, (_, ns)| LaunchTotals {
                count: sum.count + 1,
                calls_ns: sum.calls_ns.saturating_add(*ns),
            },
        )
    }
}

/// Returns the mean number of command buffers in a submission that has some.
fn mean_command_buffers(timeline: &Timeline) -> f64 {
    let counts = &timeline.trace.tables.submissions.command_buffers;
    let submissions = counts.iter().filter(|count| **count > 0).count();
    let command_buffers: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    command_buffers as f64 / submissions.max(1) as f64
}

/// Returns true where a process that uses a GPU runs Python.
fn is_python(manifest: &Manifest) -> bool {
    let uses_gpu = |id| manifest.devices.iter().any(|device| device.process == id);
    let mut processes = manifest.processes.iter();
    processes.any(|process| uses_gpu(process.id) && program(process).starts_with("python"))
}
