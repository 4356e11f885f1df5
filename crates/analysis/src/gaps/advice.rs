//! Chooses the advice on each cause of idle time that fits what was recorded. All advice is chosen here.
//!
//! The usual advice, which suits most programs, is [`CauseFacts::advice`](super::CauseFacts::advice). [`advice`] is
//! called once the idle time of the whole window is known.

mod launch_calls;

use super::building::Built;
use super::explain::HeldUp;
use super::submit_calls::{Submitted, Typical, typical};
use super::{Cause, HostTime, IdleTime, WaitTime};
use crate::command_buffers::mean_dispatches;
use crate::conditions::Pressure;
use crate::contexts::names_of_sharing;
use gapscope_timeline::quantity::{self, duration, ratio};
use gapscope_timeline::thresholds::{
    ADVICE_SHARE, COMPILED_SHARE, GRAPH_LAUNCHES, GRAPH_WORK_TIMES, MOST_OF_CALLS_SHARE,
    ROUND_TRIP_NS, SEVERAL, SLOW_LAUNCH_NS, STALLED_SHARE,
};
use gapscope_timeline::vocabulary::{Vocabulary, Words, program};
use gapscope_timeline::{Timeline, is_work};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::{Api, Manifest};
use gapscope_trace::tables::{HostCallKind, SubmissionKind, Table, TransferKind};

/// Returns the advice on each cause in `idle_time.causes`, in their order; empty where nothing helps.
pub(crate) fn advice(
    timeline: &Timeline,
    idle_time: &IdleTime,
    samples: SampledHost,
    pressure: Pressure,
) -> Vec<String> {
    let manifest = &timeline.trace.manifest;
    let vocabulary = Vocabulary::new(manifest);
    let [graphs, others] = [true, false].map(|graphs| count_launches(timeline, graphs));
    let kinds = &timeline.trace.tables.submissions.kind;
    let adviser = Adviser {
        timeline,
        words: *vocabulary.words(),
        idle_time,
        samples,
        pressure,
        mean_dispatches: mean_dispatches(timeline),
        mean_command_buffers: mean_command_buffers(timeline),
        most_are_graphs: graphs > 0 && graphs >= others,
        kernels: typical(timeline, |row| kinds[row] == SubmissionKind::Kernel),
        is_python: is_python(manifest),
    };
    (idle_time.causes.iter())
        .map(|total| adviser.advice(total.cause, total.total_ns, total.count))
        .collect()
}

/// What to do about results that are read back one by one.
const READ_LESS: &str =
    "read results back less often, such as after several steps, or keep them on the device";

/// What samples of stacks, or ranges, show of the submitting threads; empty without both.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledHost {
    /// What a late thread mostly slept for, and what to do about it, as ends of sentences.
    pub(crate) slept_for: Option<[String; 2]>,
    /// True where a late thread mostly ran.
    pub(crate) ran: bool,
    /// True where a late thread mostly loaded data, or waited for what loads it.
    pub(crate) loads_data: bool,
    /// The line at which most code is compiled or loaded.
    pub(crate) build_line: Option<String>,
}

/// The facts about a recording that its advice must fit.
struct Adviser<'a> {
    timeline: &'a Timeline<'a>,
    words: Words,
    idle_time: &'a IdleTime,
    /// What samples of stacks show.
    samples: SampledHost,
    /// How long tasks waited for parts of the machine.
    pressure: Pressure,
    /// The mean number of dispatches in a command buffer; `None` without command buffers.
    mean_dispatches: Option<f64>,
    /// The mean number of command buffers in a submission that has some.
    mean_command_buffers: f64,
    /// True where at least half of the launches are of graphs (CUDA).
    most_are_graphs: bool,
    /// The launches of kernels outside of graphs (CUDA).
    kernels: Option<Typical>,
    /// True where a process that uses a GPU runs Python.
    is_python: bool,
}

impl Adviser<'_> {
    /// Returns the advice on a cause, which has `total_ns` of idle time in `gaps` gaps.
    fn advice(&self, cause: Cause, total_ns: i64, gaps: u64) -> String {
        let usual = cause.facts(self.words.api).advice;
        match (cause, self.words.api) {
            (Cause::HostCall, _) => self.for_calls(usual),
            (Cause::HostAllocate, _) => self.for_allocations(usual),
            (Cause::HostCompile, _) => self.for_building(usual, total_ns),
            (Cause::HostLate, _) => self.for_a_late_host(usual, total_ns, gaps),
            (Cause::HostFunction, _) => self.for_host_functions(usual, total_ns),
            (Cause::SubmitCall, _) => self.for_submit_calls(usual, total_ns),
            (Cause::AfterHostWait, _) => self.for_waits(usual, total_ns),
            (Cause::QueueHandover, _) => self.for_hand_overs(usual),
            (Cause::GraphLaunch, _) => self.for_graphs(usual),
            (Cause::ContextSwitch, _) => format!(
                "{usual}; the device is used by {}",
                names_of_sharing(self.timeline)
            ),
            (Cause::LaunchLatency, Api::Cuda | Api::Hip)
                if self.most_are_graphs || !self.has_many_launches() =>
            {
                "the device's own time to start work: fewer and larger kernels".to_owned()
            }
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

    /// Returns true where many kernels are launched outside of graphs.
    fn has_many_launches(&self) -> bool {
        (self.kernels).is_some_and(|kernels| kernels.count >= GRAPH_LAUNCHES)
    }

    /// Returns true where a graph would take over launches that cost time: many kernels are launched one by one, and
    /// are not much longer than the calls that launch them.
    fn helps_graph(&self) -> bool {
        let is_short = |kernels: &Typical| {
            kernels.work_ns as f64 <= kernels.call_ns.max(1) as f64 * GRAPH_WORK_TIMES
        };
        let is_usual = |kernels: &Typical| kernels.call_ns < SLOW_LAUNCH_NS;
        (self.kernels.as_ref()).is_some_and(|kernels| {
            is_short(kernels) && is_usual(kernels) && self.has_many_launches()
        })
    }

    /// Returns the advice where code is compiled or loaded: first on new code that is built again and again.
    fn for_building(&self, usual: &str, total_ns: i64) -> String {
        let is_most = |built: &&Built| ratio(built.total_ns, total_ns) >= MOST_OF_CALLS_SHARE;
        let Some(built) = self.idle_time.built.as_ref().filter(is_most) else {
            let longest = self.longest_call(Cause::HostCompile);
            let builds_graphs =
                longest.is_some_and(|time| time.call == HostCallKind::BuildGraph.as_str());
            return match builds_graphs {
                true => {
                    "build graphs before the loop, and update them in place of building them again"
                        .to_owned()
                }
                false => usual.to_owned(),
            };
        };
        let place = self.samples.build_line.as_ref();
        let line = place.map_or(String::new(), |place| format!(", at {place}"));
        format!(
            "new code is built and loaded {}{line}, with {} before each load: build it once and keep it, such as by keeping shapes the same",
            quantity::count_of(built.loads, "time", "times"),
            duration(built.each_ns),
        )
    }

    fn for_waits(&self, usual: &str, total_ns: i64) -> String {
        let idle = self.idle_time;
        let most = (idle.waits.iter())
            .filter(|wait| !is_wait(wait.time.call))
            .find(|wait| ratio(wait.time.total_ns, total_ns) >= MOST_OF_CALLS_SHARE);
        let waits_are = |kind| (idle.submit_calls).waits_are_mostly(kind, &idle.waits, total_ns);
        match most {
            Some(wait) => self.for_a_hidden_wait(wait),
            None if waits_are(Submitted::PageableCopy) => {
                format!(
                    "most of this time passes in waits for copies of pageable memory: {}",
                    pinned(self.timeline)
                )
            }
            None if waits_are(Submitted::Read) => {
                format!(
                    "most of this time passes in waits for small results to be read back: {READ_LESS}"
                )
            }
            None if self.is_cuda() && !self.copies_to_host() => {
                "the wait serialises host and GPU: synchronise less often".to_owned()
            }
            None => usual.to_owned(),
        }
    }

    /// Returns the advice on a call that waits although its kind does not say so.
    fn for_a_hidden_wait(&self, wait: &WaitTime) -> String {
        let time = &wait.time;
        let is_call = |kinds: &[HostCallKind]| kinds.iter().any(|kind| kind.as_str() == time.call);
        let to_do = match is_call(&[HostCallKind::AllocateMemory, HostCallKind::FreeMemory]) {
            true => Cause::HostAllocate.facts(self.words.api).advice,
            false if is_call(&[HostCallKind::Submit]) => {
                "launches do so where CUDA_LAUNCH_BLOCKING or a debugger makes them: run without"
            }
            false => "call it outside of the loop, or less often",
        };
        let call = time.function.as_deref().unwrap_or(time.call);
        let thread = self.submitting();
        match wait.held_up {
            HeldUp::Itself => format!("{call} waits for the GPU: {to_do}"),
            HeldUp::OtherThread => format!(
                "{call} of another thread waits for the GPU, and the {thread} thread went on only after that call: {to_do}"
            ),
            HeldUp::InCall => format!(
                "{call} of another thread waits for the GPU, and the {thread} thread is blocked behind its lock: {to_do}"
            ),
        }
    }

    /// Returns the word for a thread that hands work to a queue.
    fn submitting(&self) -> &'static str {
        match self.is_cuda() {
            true => "launching",
            false => "submitting",
        }
    }

    /// Returns true where the trace has copies from a device to the host.
    fn copies_to_host(&self) -> bool {
        let kinds = &self.timeline.trace.tables.transfers.kind;
        kinds.contains(&TransferKind::DeviceToHost)
    }

    fn is_cuda(&self) -> bool {
        matches!(self.words.api, Api::Cuda | Api::Hip)
    }

    /// Returns the function in which the host was for the longest time of those whose calls have a cause, with its kind of
    /// call.
    fn longest_call(&self, cause: Cause) -> Option<&HostTime> {
        let idle = self.idle_time;
        let has_cause = |time: &&HostTime| {
            let mut kinds = HostCallKind::ALL.iter();
            let kind = kinds.find(|kind| kind.as_str() == time.call);
            kind.is_some_and(|kind| Cause::while_in(*kind) == cause)
        };
        let all = idle.host_calls.iter().chain(&idle.other_thread_calls);
        all.filter(has_cause).max_by_key(|time| time.total_ns)
    }

    /// Returns the advice on allocations. A pool of device memory does not help against those of the host's memory.
    fn for_allocations(&self, usual: &str) -> String {
        let function = self.longest_call(Cause::HostAllocate);
        let function = function.and_then(|time| time.function.as_deref());
        let contains = |word| function.is_some_and(|name| name.contains(word));
        match function {
            Some(name) if contains("Host") || contains("Managed") => {
                format!(
                    "the host was mostly in {name}: allocate that memory once, and reuse that memory"
                )
            }
            Some(name) if contains("Async") => format!(
                "the host was mostly in {name}, which takes from a pool already: let the pool keep its memory (its release threshold), or allocate once and reuse"
            ),
            _ => usual.to_owned(),
        }
    }

    /// Returns the advice on hand-overs between queues. Those between devices have to be, and so have those of copies, which
    /// overlap kernels only on a queue of their own.
    fn for_hand_overs(&self, usual: &str) -> String {
        let timeline = self.timeline;
        let tables = &timeline.trace.tables;
        let row = |id| {
            let row = timeline.submission_ids.row(id);
            (row != NONE).then_some(row as usize)
        };
        let queue = |row: usize| timeline.submissions[row].queue;
        let gpu = |row: usize| timeline.queues[queue(row) as usize].gpu;
        let copies = |row: usize| tables.submissions.kind[row] == SubmissionKind::Transfer;
        let rows = (0..tables.dependencies.len()).filter_map(|at| {
            let after = row(tables.dependencies.submission[at])?;
            let before = row(tables.dependencies.waits_for.at(at)?)?;
            (queue(after) != queue(before)).then_some([before, after])
        });
        let (mut all, mut between_gpus, mut of_copies) = (0_u64, 0_u64, 0_u64);
        for [before, after] in rows {
            all += 1;
            between_gpus += u64::from(gpu(before) != gpu(after));
            of_copies += u64::from(copies(before) || copies(after));
        }
        if between_gpus * 2 > all {
            "most is between devices: give each device more work between hand-overs".to_owned()
        } else if of_copies * 2 > all {
            "most is of copies, which overlap kernels where they are: copy more at once".to_owned()
        } else {
            usual.to_owned()
        }
    }

    fn for_calls(&self, usual: &str) -> String {
        const IMAGES: [&str; 4] = [
            "vkAcquireNextImage",
            "vkQueuePresent",
            "acquire-image",
            "present",
        ];
        match self.idle_time.host_was(Cause::HostCall) {
            Some(doing) if IMAGES.iter().any(|call| doing.contains(call)) => {
                format!(
                    "the host was mostly {doing}, which waits for the display or the compositor"
                )
            }
            Some(doing) => {
                format!("the host was mostly {doing}: call it before the loop, or less often")
            }
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

    /// Returns the advice where the host had not submitted for `total_ns` in `gaps` gaps: what to do, and, as shares of
    /// that time, how much of this time other threads compiled or is not known.
    fn for_a_late_host(&self, usual: &str, total_ns: i64, gaps: u64) -> String {
        let is_cuda = self.is_cuda();
        // Between launches that follow each other the thread prepares one launch; a long time it spends on something else.
        let is_between_launches = total_ns / (gaps.max(1) as i64) <= ROUND_TRIP_NS;
        let what_to_do = match is_cuda {
            true if self.helps_graph() && is_between_launches => {
                "launch ahead, or put many launches into a graph"
            }
            true if self.most_are_graphs || is_between_launches => "launch ahead",
            true => "launch ahead, or prepare the work on another thread",
            false => "prepare work ahead, or submit more at once",
        };
        let thread = self.submitting();
        let known_ns = total_ns.saturating_sub(self.idle_time.unknown_host_ns);
        let told_by_code = ratio(self.idle_time.told_by_code_ns, known_ns);
        let outside = match &self.samples.slept_for {
            _ if self.samples.loads_data => format!(
                "the {thread} thread loaded data, or waited for a loader: load ahead in worker processes, or in more of them"
            ),
            Some([waited_for, to_do]) => {
                format!("the {thread} thread slept, waiting for {waited_for}: {to_do}")
            }
            None if self.samples.ran => {
                format!("the {thread} thread ran its own code: {what_to_do}")
            }
            None if told_by_code >= MOST_OF_CALLS_SHARE => format!(
                "the {thread} thread was in ranges of the program, and its waits in them are not in the trace: {what_to_do}"
            ),
            None if is_cuda && self.is_python => format!(
                "the launching thread was outside of GPU calls, such as in Python: {what_to_do}"
            ),
            None if is_cuda => {
                format!("the launching thread was outside of GPU calls: {what_to_do}")
            }
            None => usual.to_owned(),
        };
        let known = match self.idle_time.late_while_compiling_ns {
            ns if ratio(ns, total_ns) >= COMPILED_SHARE => format!(
                "in {} of this time other threads compiled or loaded code, for which the submitting thread may have waited: {}; else {outside}",
                quantity::share_of(ns, total_ns),
                Cause::HostCompile.facts(self.words.api).advice,
            ),
            _ => outside,
        };
        let submits = self.words.submits;
        let unknown = match self.idle_time.unknown_submitter_ns {
            0 => format!("what the {thread} thread did is not in the trace"),
            _ => format!("it is not known which thread {submits}, or what it did"),
        };
        let known = match self.idle_time.unknown_host_ns {
            ns if ratio(ns, total_ns) < ADVICE_SHARE => known,
            ns if ns < total_ns => {
                let share = quantity::share_of(ns, total_ns);
                format!("{known}; in {share} of this time {unknown}")
            }
            _ => format!("{unknown}: {what_to_do}"),
        };
        // A thread that waits for a processor is ready to run, and samples show it so.
        let slept = self.samples.slept_for.is_some();
        match self.stalled().filter(|_| !slept) {
            Some(stalled) => format!("{known}; {stalled}"),
            None => known,
        }
    }

    /// Returns that tasks waited for a part of the machine most of the time, and what to do.
    fn stalled(&self) -> Option<String> {
        let is_stalled = |share: &f64| *share >= STALLED_SHARE;
        let said = |share: f64, what: &str, to_do: &str| {
            let share = quantity::share(share);
            format!(
                "a task waited for {what} for {share} of the time, perhaps the submitting thread: {to_do}"
            )
        };
        let processors = self.pressure.processors.filter(is_stalled).map(|share| {
            said(
                share,
                "a processor",
                "stop other programs, or use fewer threads",
            )
        });
        let disks = self.pressure.disks.filter(is_stalled);
        processors
            .or(disks.map(|share| said(share, "a disk", "read ahead, or from faster storage")))
    }

    /// Returns the usual advice, with the share of `total_ns` in which it is not known when functions ran.
    fn for_host_functions(&self, usual: &str, total_ns: i64) -> String {
        const BOUND: &str = "as it is not recorded when they ran";
        match self.idle_time.untimed_host_function_ns {
            0 => usual.to_owned(),
            ns if ns < total_ns => {
                let share = quantity::share_of(ns, total_ns);
                format!("{usual}; at most so long for {share} of this time, {BOUND}")
            }
            _ => format!("{usual}; at most so long, {BOUND}"),
        }
    }
}

/// Returns how memory is pinned.
pub(crate) fn pinned(timeline: &Timeline) -> String {
    let manifest = &timeline.trace.manifest;
    let by = match Vocabulary::new(manifest).words().api {
        _ if is_python(manifest) => "pin_memory",
        Api::Hip => "hipHostMalloc",
        _ => "cudaHostAlloc",
    };
    format!("pin the memory ({by}), and copy asynchronously")
}

/// Returns true where a kind of call is a wait by itself.
fn is_wait(call: &str) -> bool {
    let mut kinds = HostCallKind::ALL
        .iter()
        .filter(|kind| kind.as_str() == call);
    kinds.any(|kind| kind.is_wait())
}

/// Counts the launches of graphs, or all others.
fn count_launches(timeline: &Timeline, graphs: bool) -> u64 {
    let kinds = timeline.trace.tables.submissions.kind.iter();
    let launches = kinds.filter(|kind| is_work(**kind));
    launches
        .filter(|kind| (**kind == SubmissionKind::Graph) == graphs)
        .count() as u64
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
