//! Words for the causes of gaps.

use crate::document::Tone;
use crate::number;
use crate::vocabulary::Vocabulary;
use gapscope_analysis::gaps::{Cause, GapTotal, IdleTime};

const LAUNCH_AHEAD: &str = "launch ahead, or put many launches into a graph";
const SUBMIT_AHEAD: &str = "prepare work ahead, or submit more at once";

/// How a cause is said.
pub(crate) struct Words {
    /// Its mark in the timeline.
    pub letter: char,
    /// Its name.
    pub name: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// Its colour: causes that belong together share one.
    pub tone: Tone,
}

/// The words for a cause, in those of an API.
pub(crate) fn words(cause: Cause, vocabulary: &Vocabulary) -> Words {
    let mut words = common(cause);
    if vocabulary.cuda {
        (words.name, words.advice) = in_cuda(cause, words.name, words.advice);
    }
    words
}

/// What to do about the idle time of a cause.
pub(crate) fn advice(total: &GapTotal, idle: &IdleTime, vocabulary: &Vocabulary) -> String {
    let advice = words(total.cause, vocabulary).advice;
    if total.cause != Cause::HostLate || idle.unknown_host_ns == 0 {
        return advice.to_owned();
    }
    let (submits, what_to_do) = match vocabulary.cuda {
        true => ("launches", LAUNCH_AHEAD),
        false => ("submits", SUBMIT_AHEAD),
    };
    let unknown = format!("it is not known which thread {submits}, or what it did");
    match idle.unknown_host_ns < total.total_ns {
        true => {
            let share = number::share_of(idle.unknown_host_ns, total.total_ns);
            format!("{advice}; in {share} of it {unknown}")
        }
        false => format!("{unknown}: {what_to_do}"),
    }
}

/// The mark of a cause in the timeline and its colour, which are the same for all APIs.
pub(crate) fn mark(cause: Cause) -> (char, Tone) {
    let words = common(cause);
    (words.letter, words.tone)
}

fn in_cuda(cause: Cause, name: &'static str, advice: &'static str) -> (&'static str, &'static str) {
    match cause {
        Cause::HostLate => (
            name,
            "the launching thread ran its own code, such as Python: launch ahead, or put many launches into a graph",
        ),
        Cause::HostCompile => (
            "host loads code",
            "load modules and instantiate graphs before the loop, or warm up; CUDA_MODULE_LOADING=EAGER loads at once",
        ),
        Cause::HostAllocate => (
            name,
            "allocate once and reuse, or from a memory pool (cudaMallocAsync)",
        ),
        Cause::SubmitCall => (
            "launch call",
            "put many small launches into a graph, or fuse kernels",
        ),
        Cause::AfterHostWait => (
            name,
            "the wait serialises host and GPU: synchronise less often, and copy results asynchronously to pinned memory",
        ),
        Cause::OtherQueue => (
            "other stream",
            "it waited for an event of another stream: shorten that stream's work, or give this one independent work",
        ),
        Cause::QueueHandover => (
            "stream hand-over",
            "keep work that depends on each other on one stream",
        ),
        Cause::LaunchLatency => (
            name,
            "the device's own time to start work: fewer and larger kernels, or a graph",
        ),
        Cause::GraphLaunch => (
            name,
            "put more work into each graph, and launch the next before the last has ended",
        ),
        Cause::WithinCommandBuffer => (
            "within a graph",
            "dependencies between the graph's nodes: fewer of them, or fuse kernels",
        ),
        Cause::HostSignal | Cause::Recording | Cause::Unknown => (name, advice),
    }
}

fn common(cause: Cause) -> Words {
    let (letter, name, tone, advice) = match cause {
        Cause::HostLate => (
            'h',
            "host late",
            0,
            "the submitting thread ran its own code: prepare work ahead, or submit more at once",
        ),
        Cause::HostCompile => (
            'c',
            "host compiles",
            0,
            "create pipelines and shaders before the loop, or keep a pipeline cache",
        ),
        Cause::HostAllocate => (
            'a',
            "host allocates",
            0,
            "allocate once and reuse; keep buffers mapped",
        ),
        Cause::SubmitCall => (
            's',
            "submit call",
            0,
            "put several command buffers into one submission",
        ),
        Cause::AfterHostWait => (
            'w',
            "after host wait",
            1,
            "the wait serialises host and GPU: submit the next work before waiting",
        ),
        Cause::OtherQueue => (
            'q',
            "other queue",
            2,
            "it waited for another queue's work: shorten that, or give this queue independent work",
        ),
        Cause::QueueHandover => (
            'o',
            "queue hand-over",
            2,
            "keep work that depends on each other on one queue",
        ),
        Cause::HostSignal => (
            'g',
            "host signal",
            1,
            "signal earlier, or let the work before signal",
        ),
        Cause::LaunchLatency => (
            'l',
            "launch latency",
            3,
            "the device's own time to start work: fewer and larger submissions",
        ),
        Cause::WithinCommandBuffer => (
            'b',
            "within command buffer",
            4,
            "barriers between dispatches: fewer of them, or fuse the kernels",
        ),
        Cause::GraphLaunch => (
            'n',
            "graph launch",
            3,
            "put more work into each graph, and launch the next before the last has ended",
        ),
        Cause::Recording => (
            'r',
            "recording",
            0,
            "gapscope's own cost: the program without it does not wait here",
        ),
        Cause::Unknown => ('?', "unknown", 5, "the trace does not say"),
    };
    Words {
        letter,
        name,
        advice,
        tone: Tone::Cause(tone),
    }
}
