//! The causes of idle time. One entry for each cause holds its name, text, advice and side of the verdict.
//!
//! To add a cause, add its entry here and the place that finds it (`explain.rs`, or [`CallClass`] for what a host thread does).
//! Report, page and exports read the entry; `UPDATE=1 cargo test -p gapscope-analysis causes` writes the tables in
//! `docs/verdicts.md` and `python/gapscope/_causes.py` from it.

use gapscope_timeline::host::{CallClass, Segment};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::HostCallKind;
use schemars::JsonSchema;
use serde::Serialize;

/// The part of the verdict's time that a cause counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The host had not submitted.
    Host,
    /// Host and device, or queues, waited for each other.
    Sync,
    /// The device started or ordered what it had.
    Launch,
    /// The trace does not say.
    Unknown,
}

impl Side {
    /// All sides, in the order in which they are declared.
    pub const ALL: [Side; 4] = [Side::Host, Side::Sync, Side::Launch, Side::Unknown];

    /// Returns the side's stable name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Host => "host",
            Side::Sync => "sync",
            Side::Launch => "launch",
            Side::Unknown => "unknown",
        }
    }
}

/// Causes that belong together, and share a colour where there are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The host had not submitted.
    Host,
    /// The host waited for the device, or the device for the host.
    HostWait,
    /// A queue waited for another.
    Queues,
    /// The device started what it had.
    Launch,
    /// The commands of a command buffer waited for each other.
    CommandBuffer,
    /// The trace does not say.
    Unknown,
}

impl Family {
    /// Returns the part of the verdict's time that causes of the family count for.
    pub const fn side(self) -> Side {
        match self {
            Family::Host => Side::Host,
            Family::HostWait | Family::Queues => Side::Sync,
            Family::Launch | Family::CommandBuffer => Side::Launch,
            Family::Unknown => Side::Unknown,
        }
    }
}

/// All that is known of a cause, in the words of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CauseFacts {
    /// The cause; in JSON its stable name.
    pub cause: Cause,
    /// The group of causes that it belongs to.
    pub family: Family,
    /// The part of the verdict's time that it counts for.
    pub side: Side,
    /// Its mark in the report's timeline.
    pub letter: char,
    /// Its colour, `#rrggbb`, on light and on dark ground. The hues are near Okabe and Ito's palette, moved apart by search
    /// for the greatest least distance with each colour blindness; a family shares a hue.
    pub colour: &'static str,
    /// Its name, for people.
    pub name: &'static str,
    /// What happened, in one sentence.
    pub sentence: &'static str,
    /// What to do about it in most programs, without a full stop; empty where nothing helps. [`Findings::advice_on`](crate::Findings::advice_on)
    /// fits what was recorded.
    pub advice: &'static str,
    /// What the submitting thread was doing, as the end of a sentence; of causes on the host's side.
    pub host_was: Option<&'static str>,
}

// Makes of each entry a variant of `Cause`, its stable name and its facts. `in_cuda` replaces fields for CUDA and
// HIP, `in_hip` for HIP after that.
macro_rules! causes {
    ($(
        $(#[doc = $doc:literal])+
        $cause:ident = $key:literal {
            family: $family:ident,
            letter: $letter:literal,
            colour: $colour:literal,
            name: $name:literal,
            sentence: $sentence:literal,
            advice: $advice:literal,
            $(host_was: $host_was:literal,)?
            $(in_cuda: { $($field:ident: $words:literal),+ $(,)? },)?
            $(in_hip: { $($in_hip:ident: $words_in_hip:literal),+ $(,)? },)?
        }
    )+) => {
        /// Why a device ran nothing. Each nanosecond of a gap has exactly one cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($(#[doc = $doc])+ $cause,)+
        }

        impl Cause {
            /// All causes, in the order in which they are declared.
            pub const ALL: [Cause; [$(Cause::$cause),+].len()] = [$(Cause::$cause),+];

            /// Returns the cause's stable name in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Cause::$cause => $key,)+
                }
            }

            /// Returns the facts about the cause, in the words of an API, or for `Unknown` in words that suit several
            /// APIs.
            pub fn facts(self, api: Api) -> CauseFacts {
                match self {
                    $(Cause::$cause => {
                        let facts = CauseFacts {
                            cause: self,
                            family: Family::$family,
                            side: Family::$family.side(),
                            letter: $letter,
                            colour: $colour,
                            name: $name,
                            sentence: $sentence,
                            advice: $advice,
                            host_was: causes!(@option $($host_was)?),
                        };
                        match api {
                            Api::Cuda => causes!(@with facts $($($field: $words),+)?),
                            Api::Hip => {
                                let facts = causes!(@with facts $($($field: $words),+)?);
                                causes!(@with facts $($($in_hip: $words_in_hip),+)?)
                            }
                            Api::Vulkan | Api::Metal | Api::Unknown => facts,
                        }
                    })+
                }
            }
        }
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
    (@with $facts:ident) => { $facts };
    (@with $facts:ident $($field:ident: $words:literal),+) => { CauseFacts { $($field: $words,)+ ..$facts } };
}

causes! {
    /// The host had not yet started to submit the next work, as far as is known outside of calls of the API. For how long the submitting
    /// thread, or its calls, are unknown is [`IdleTime::unknown_host_ns`](super::IdleTime::unknown_host_ns).
    HostLate = "host-late" {
        family: Host,
        letter: 'h',
        colour: "#c15b11",
        name: "host late",
        sentence: "The host had not yet started to submit the next work, and was in no known GPU call.",
        advice: "the submitting thread was outside of GPU calls: prepare work ahead, or submit more at once",
        host_was: "outside of GPU calls",
        in_cuda: {
            advice: "the launching thread was outside of GPU calls: launch ahead, or put many launches into a graph",
        },
    }
    /// The host had not yet started to submit: the submitting thread was compiling pipelines or shaders, or in no call while
    /// another thread of its process was until then.
    HostCompile = "host-compile" {
        family: Host,
        letter: 'c',
        colour: "#9d3e07",
        name: "host compiles",
        sentence: "The next work had not been submitted: the submitting thread was compiling or loading code, or another thread was that it may have waited for.",
        advice: "create pipelines and shaders before the loop, or keep a pipeline cache",
        host_was: "compiling or loading code",
        in_cuda: {
            name: "host loads or builds",
            sentence: "The next work had not been submitted: the submitting thread was loading or compiling code, or building a graph.",
            advice: "load modules and instantiate graphs before the loop, or warm up; CUDA_MODULE_LOADING=EAGER loads at once",
        },
        in_hip: { advice: "load modules and instantiate graphs before the loop, or warm up" },
    }
    /// The host had not yet started to submit: the submitting thread was allocating, freeing or mapping memory, or in no call
    /// while another thread of its process was until then.
    HostAllocate = "host-allocate" {
        family: Host,
        letter: 'a',
        colour: "#7a2203",
        name: "host allocates",
        sentence: "The next work had not been submitted: the submitting thread was allocating, freeing or mapping memory, or another thread was that it may have waited for.",
        advice: "allocate once and reuse; keep buffers mapped",
        host_was: "allocating, freeing or mapping memory",
        in_cuda: { advice: "allocate once and reuse, or from a memory pool (cudaMallocAsync)" },
        in_hip: { advice: "allocate once and reuse, or from a memory pool (hipMallocAsync)" },
    }
    /// The host was inside a submission call.
    SubmitCall = "submit-call" {
        family: Host,
        letter: 's',
        colour: "#f5a60f",
        name: "submit call",
        sentence: "The host was inside a submission call.",
        advice: "put several command buffers into one submission",
        host_was: "inside submission calls",
        in_cuda: {
            name: "launch call",
            advice: "put many small launches into a graph, or fuse kernels",
        },
    }
    /// The host had not yet started to submit: the submitting thread was in another call of the API, or in a poll that
    /// held nothing up.
    HostCall = "host-call" {
        family: Host,
        letter: 'p',
        colour: "#cab890",
        name: "host in API call",
        sentence: "The next work had not been submitted: the submitting thread was in a call of the API that neither submits nor waits, compiles or allocates.",
        advice: "the report names the function: call it before the loop, or less often",
        host_was: "in other calls of the API",
    }
    /// The process that submitted the next work had not made a call of the API before.
    ProcessStart = "process-start" {
        family: Host,
        letter: 'e',
        colour: "#410c17",
        name: "process start",
        sentence: "The process that submitted the next work had made no call in the trace before: it had not started, or was still preparing.",
        advice: "start that process earlier, or judge each process by itself",
        host_was: "before the first call of the process that went on",
    }
    /// The next work waited, in its queue, for a function that the host runs.
    HostFunction = "host-function" {
        family: Host,
        letter: 'f',
        colour: "#dc8012",
        name: "host function",
        sentence: "The next work was submitted and waited, in its queue, for a function that the host runs.",
        advice: "shorten the function, or let a thread of the program do its work",
        host_was: "running functions that a queue waited for",
    }
    /// The host waited for the GPU to finish, and started the next submission only after: a serialisation point.
    AfterHostWait = "after-host-wait" {
        family: HostWait,
        letter: 'w',
        colour: "#a26ecd",
        name: "after host wait",
        sentence: "The host waited for the GPU to finish before it submitted the next work: a serialisation point.",
        advice: "the wait serialises host and GPU: submit the next work before waiting",
        in_cuda: {
            advice: "the wait serialises host and GPU: synchronise less often, and copy results asynchronously to pinned memory",
        },
    }
    /// The next work was submitted and waited for work on another queue that had not finished.
    OtherQueue = "other-queue" {
        family: Queues,
        letter: 'q',
        colour: "#0d56c0",
        name: "other queue",
        sentence: "The next work was waiting for unfinished work on another queue or device.",
        advice: "the work waited for another queue's work: shorten that, or give this queue independent work",
        in_cuda: {
            name: "other stream",
            advice: "the work waited for an event of another stream: shorten that stream's work, or give this one independent work",
        },
    }
    /// The host waited for the display to take or to give back an image, in the rhythm of the display.
    Display = "display" {
        family: HostWait,
        letter: 'd',
        colour: "#c51cfc",
        name: "display",
        sentence: "The next work had not been submitted: the submitting thread waited for the display to take or to give back an image, in the rhythm of the display.",
        advice: "",
    }
    /// The next work waited for another queue's work, and that had finished: the hand-over itself.
    QueueHandover = "queue-handover" {
        family: Queues,
        letter: 'o',
        colour: "#25bbff",
        name: "queue hand-over",
        sentence: "Another queue had finished what the next work waited for: the hand-over between queues itself.",
        advice: "keep work that depends on each other on one queue",
        in_cuda: {
            name: "stream hand-over",
            advice: "keep work that depends on each other on one stream",
        },
    }
    /// The next work was submitted and waited for a signal that the host had not given.
    HostSignal = "host-signal" {
        family: HostWait,
        letter: 'g',
        colour: "#97a6bb",
        name: "host signal",
        sentence: "The next work was submitted and waited for a signal from the host.",
        advice: "signal earlier, or let earlier work signal",
    }
    /// The next work waited, in its queue, for a value in memory or for a semaphore of another API or process.
    ExternalWait = "external-wait" {
        family: HostWait,
        letter: 'x',
        colour: "#610f87",
        name: "external wait",
        sentence: "The next work was submitted and waited, in its queue, for a value in memory or for a semaphore of another API or process.",
        advice: "the value or signal came late: its source is not in the trace",
    }
    /// The next work waited, in its queue, for a move of managed memory, whose times are not recorded.
    PageMove = "page-move" {
        family: Unknown,
        letter: 'm',
        colour: "#fcffae",
        name: "page move",
        sentence: "The next work was submitted behind a move of managed memory, whose times are not recorded: the move took at most so long.",
        advice: "managed memory may have moved for so long: prefetch the memory earlier or on another stream, or keep it where it is used",
    }
    /// The next work was submitted and free to start: the time the device took to start it.
    LaunchLatency = "launch-latency" {
        family: Launch,
        letter: 'l',
        colour: "#44977e",
        name: "launch latency",
        sentence: "The next work was submitted and free to start: the device took this long to start it.",
        advice: "the device's own time to start work: fewer and larger submissions",
        in_cuda: { advice: "the device's own time to start work: fewer and larger kernels, or a graph" },
    }
    /// The next work was submitted and free to start when work of another process or context ended: the time the device took to
    /// change to it, and the rest of that work.
    ContextSwitch = "context-switch" {
        family: Launch,
        letter: 't',
        colour: "#250554",
        name: "context switch",
        sentence: "The next work was submitted and free to start while the device ran work of another process or context: the device had to end that, and to change from it.",
        advice: "processes take turns on the device: submit from one process, or run them after each other",
        in_cuda: {
            advice: "processes or contexts take turns on the device: submit from one, run them after each other, or let them share the device by MPS (nvidia-cuda-mps-control)",
        },
        in_hip: {
            advice: "processes or contexts take turns on the device: submit from one, or run them after each other",
        },
    }
    /// A graph was launched and free to start: the time the device took to start it after the host's call.
    GraphLaunch = "graph-launch" {
        family: Launch,
        letter: 'n',
        colour: "#26f4e1",
        name: "graph launch",
        sentence: "A graph had been launched and was free to start: the device took this long to start it.",
        advice: "put more work into each graph, or launch the next before the last has ended",
    }
    /// Between two commands of one command buffer: barriers, and commands that are not recorded.
    WithinCommandBuffer = "within-command-buffer" {
        family: CommandBuffer,
        letter: 'b',
        colour: "#d5e37e",
        name: "within command buffer",
        sentence: "Between commands of one command buffer: barriers, and commands that are not recorded.",
        advice: "barriers between dispatches, or commands that are not recorded: fewer barriers, or fused kernels",
        in_cuda: {
            name: "within a graph",
            sentence: "Between the nodes of one graph: their order, and nodes that are not recorded.",
            advice: "the order of the graph's nodes, or nodes that are not recorded: fewer dependencies, or fused kernels",
        },
    }
    /// The host had not yet submitted: the submitting thread was held up by the recording; or nothing was recorded then.
    Recording = "recording" {
        family: Host,
        letter: 'r',
        colour: "#30474e",
        name: "recording",
        sentence: "The submitting thread was held up by the recording itself, or nothing was recorded then, as between two windows of a profiler.",
        advice: "the recording's own time: what it costs, or did not record",
        host_was: "held up by the recording itself",
    }
    /// The trace does not say.
    Unknown = "unknown" {
        family: Unknown,
        letter: '?',
        colour: "#745d79",
        name: "unknown",
        sentence: "The trace does not say.",
        advice: "",
    }
}

impl Cause {
    /// Returns the meaning of the cause in one sentence.
    pub fn explanation(self) -> &'static str {
        self.facts(Api::Unknown).sentence
    }

    /// Returns the part of the verdict's time that the cause counts for.
    pub fn side(self) -> Side {
        self.facts(Api::Unknown).side
    }
}

/// Maps the class of the submitting thread's call to the cause for which a device idles whose next work has not been
/// submitted.
impl From<CallClass> for Cause {
    fn from(class: CallClass) -> Cause {
        match class {
            CallClass::Compile => Cause::HostCompile,
            CallClass::Allocate => Cause::HostAllocate,
            CallClass::Submit => Cause::SubmitCall,
            CallClass::Recording => Cause::Recording,
            // A host function is code of the program, although a queue runs it.
            CallClass::HostFunction => Cause::HostLate,
            CallClass::Wait => Cause::AfterHostWait,
            CallClass::Other => Cause::HostCall,
        }
    }
}

impl Cause {
    /// Returns why a device idles whose next work has not been submitted while the submitting thread is in a call. A poll
    /// counts by itself, not as part of a wait.
    pub fn while_in(call: HostCallKind) -> Cause {
        CallClass::from_call(call).into()
    }

    /// Returns why a device idles whose next work has not been submitted in a segment of the submitting thread.
    pub(super) fn in_segment(segment: &Segment) -> Cause {
        segment.class().into()
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
