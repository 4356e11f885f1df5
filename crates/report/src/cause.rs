//! Words for the causes of gaps.

use crate::document::Tone;
use gapscope_analysis::gaps::Cause;

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

/// The words for a cause.
pub(crate) fn words(cause: Cause) -> Words {
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
        Cause::Unknown => ('?', "unknown", 5, "the trace does not say"),
    };
    Words {
        letter,
        name,
        advice,
        tone: Tone::Cause(tone),
    }
}
