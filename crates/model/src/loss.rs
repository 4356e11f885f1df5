//! The loss ledger: counts what was not recorded, by kind and reason. [`Ledger::add`] takes each loss, and
//! [`Ledger::losses`] returns the sums.

mod phrase;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Defines [`LossKind`] from lines `Kind = "text"`.
macro_rules! loss_kinds {
    ($($kind:ident = $text:literal,)+) => {
        /// The kind of something that was not recorded. Its text is in the plural.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs)] // The texts say it.
        pub enum LossKind {
            $(#[doc = $text] $kind,)+
            /// A kind that the SDK's user defines, or another version of gapscope.
            Other(Cow<'static, str>),
        }

        impl LossKind {
            /// All kinds but those of users and of other versions.
            pub const ALL: &[LossKind] = &[$(LossKind::$kind,)+];

            /// Returns the text in the trace.
            pub fn as_str(&self) -> &str {
                match self {
                    $(LossKind::$kind => $text,)+
                    LossKind::Other(text) => text,
                }
            }

            fn from_known_text(text: &str) -> Option<LossKind> {
                match text {
                    $($text => Some(LossKind::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

loss_kinds! {
    Bindings = "bindings",
    BoundDescriptorSets = "bound descriptor sets",
    Captures = "captures",
    ClockSamples = "clock samples",
    CommandBufferCommits = "commits of command buffers",
    CommandBufferContents = "command buffers' contents",
    CommandBufferRows = "rows of command buffers",
    CommandBufferTimes = "command-buffer times",
    CommandBuffers = "command buffers",
    CommandBuffersOfWork = "command buffers of pieces of GPU work",
    Commands = "commands",
    CompressedPackets = "bundles of compressed packets",
    Copies = "copies",
    CopiesBetweenDevices = "copies between devices",
    CounterSamples = "samples of hardware counters",
    CounterValues = "values of counters",
    CudaActivities = "CUDA activities",
    CudaActivitiesAtSuddenEnd = "CUDA activities before a sudden end",
    CudaContexts = "CUDA contexts",
    CudaDevices = "CUDA devices",
    CudaStreams = "CUDA streams",
    CudaWork = "CUDA work of a process",
    DatabasePages = "pages of the database",
    DatabaseRows = "rows of the database",
    Decompressions = "decompressions of memory by the device",
    DeferredNvtxEvents = "deferred NVTX events, or batches of them",
    DispatchKernels = "kernels of dispatches",
    DispatchRows = "rows of dispatches",
    DispatchStarts = "starts of dispatches",
    DispatchTimes = "dispatch times",
    Dispatches = "dispatches",
    DroppedCudaActivities = "dropped CUDA activities",
    Events = "events",
    EventsOnQueues = "events on queues",
    FileParts = "parts of files",
    FileRests = "rests of files",
    Fills = "fills",
    FtracePackets = "packets of ftrace",
    GpuIntervals = "GPU intervals",
    GraphLaunches = "graph launches",
    GraphTimes = "graph times",
    GraphsForDevice = "graphs that the device can launch itself",
    HookActions = "hook actions",
    HostCalls = "host calls",
    HostCallsOfWork = "host calls of GPU work",
    ImportedCommandBufferTimes = "times of command buffers",
    InstructionSampleBatches = "batches of samples of instructions",
    InstructionSamples = "samples of instructions",
    Intervals = "intervals",
    KernelSources = "sources of kernels",
    Kernels = "kernels",
    LabelEnds = "ends of labels",
    LabelStarts = "starts of labels",
    Labels = "labels",
    LabelsOfWork = "labels of GPU work",
    LaunchingCode = "pieces of code whose kernels can launch others",
    LoadedCode = "pieces of loaded code",
    ManagedAllocations = "managed allocations whose page moves are not recorded",
    ManagedMemoryMoves = "prefetches and discards of managed memory",
    MemoryAllocations = "memory allocations",
    MemoryEvents = "memory events",
    MemoryFrees = "memory frees",
    MemoryPoolEvents = "memory pool events",
    MemoryPools = "memory pools",
    NvtxCategories = "NVTX categories",
    NvtxExtensionsOfLibrary = "NVTX extensions of a library",
    NvtxPayloads = "NVTX payloads",
    NvtxPayloadsOfLibrary = "NVTX payloads of a library",
    OpaqueWorkTimes = "opaque-work times",
    OverheadThreads = "thread ids of overheads",
    OverheadTimes = "overhead times",
    Overheads = "overheads",
    PacketChunks = "chunks of packets",
    PacketRuns = "runs of packets",
    Packets = "packets",
    PassRows = "rows of passes",
    PassTimes = "pass times",
    Passes = "passes",
    PlausibleDeviceTimes = "plausible device times",
    Processes = "processes",
    ProfileEvents = "events of profiles",
    PythonStacks = "stacks of Python",
    Ranges = "ranges",
    RankTraces = "traces of ranks",
    RecordedFunctions = "functions whose calls are recorded",
    Records = "records",
    RegistersOfKernels = "registers and memory of kernels",
    ScopeRows = "rows of scopes",
    ScopeTimes = "scope times",
    Scopes = "scopes",
    SecondaryContents = "secondary command buffers' contents",
    RepeatedEvents = "repeated events",
    ShaderProfilerSamples = "samples of the shader profiler",
    Slices = "slices",
    StackSamples = "stack samples",
    Stacks = "stacks of host threads",
    Submissions = "submissions",
    TimestampMemory = "requests of memory for timestamps",
    Timestamps = "timestamps",
    TimingBlocks = "whole blocks of timings",
    TrackEvents = "track events",
    Tracks = "tracks",
    TransferRoutes = "ways of transfers",
    TransferTimes = "transfer times",
    Transfers = "transfers",
    UnambiguousCallsOfWork = "unambiguous calls of GPU work",
    UnlistedDispatches = "command buffers whose dispatches are not listed",
    Waits = "waits",
    WaitsAndEvents = "waits and events on queues",
}

impl LossKind {
    /// Returns the text for a count: `dispatch times`, `dispatch time`. Texts of [`LossKind::Other`] stay as they
    /// are, but for those of the rows and records of a file, which importers name by the file's own words.
    fn for_count(&self, count: u64) -> Cow<'_, str> {
        let is_named_by_file = |text: &str| {
            let mut starts = [
                "rows of ",
                "records of ",
                "arrows of category ",
                "events of category ",
            ]
            .iter();
            starts.any(|start| text.starts_with(start))
        };
        match (count, self) {
            (1, LossKind::Other(text)) if is_named_by_file(text) => singular(text),
            (1, LossKind::Other(text)) => Cow::Borrowed(text),
            (1, kind) => singular(kind.as_str()),
            (_, kind) => Cow::Borrowed(kind.as_str()),
        }
    }

    /// Returns the kind of a text; [`LossKind::Other`] for a text that is not listed.
    pub fn from_text(text: impl Into<Cow<'static, str>>) -> LossKind {
        let text = text.into();
        LossKind::from_known_text(&text).unwrap_or(LossKind::Other(text))
    }
}

/// Converts the text of a known kind to the singular: its noun before words such as "of" loses the plural's ending.
fn singular(text: &str) -> Cow<'_, str> {
    const SUFFIX_WORDS: [&str; 8] = [
        " of ",
        " between ",
        " before ",
        " whose ",
        " that ",
        " on ",
        " for ",
        ",",
    ];
    let end = SUFFIX_WORDS.iter().filter_map(|word| text.find(word)).min();
    let (noun, behind) = text.split_at(end.unwrap_or(text.len()));
    let one = match noun {
        many if many.ends_with("ies") => format!("{}y", &many[..many.len() - 3]),
        many if ["sses", "ches", "shes"]
            .iter()
            .any(|end| many.ends_with(end)) =>
        {
            many[..many.len() - 2].to_owned()
        }
        many => many.strip_suffix('s').unwrap_or(many).to_owned(),
    };
    Cow::Owned(one + behind)
}

impl From<&'static str> for LossKind {
    fn from(text: &'static str) -> LossKind {
        LossKind::from_text(text)
    }
}

impl From<String> for LossKind {
    fn from(text: String) -> LossKind {
        LossKind::from_text(text)
    }
}

impl From<Cow<'static, str>> for LossKind {
    fn from(text: Cow<'static, str>) -> LossKind {
        LossKind::from_text(text)
    }
}

impl Default for LossKind {
    fn default() -> Self {
        LossKind::Other(Cow::Borrowed(""))
    }
}

impl std::fmt::Display for LossKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Orders by text, as losses are listed.
impl Ord for LossKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for LossKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for LossKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LossKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(LossKind::from_text(String::deserialize(from)?))
    }
}

/// A kind of thing that was not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Loss {
    /// The kind, such as `dispatch times` or `records`.
    #[serde(rename = "what")]
    pub kind: LossKind,
    /// The number of things that were lost.
    pub count: u64,
    /// The reason of the loss, as a phrase.
    pub reason: Cow<'static, str>,
}

impl Loss {
    /// Makes an entry of the ledger.
    pub fn new(
        kind: impl Into<LossKind>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) -> Loss {
        Loss {
            kind: kind.into(),
            count,
            reason: reason.into(),
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.count, self.kind, self.reason)
    }
}

/// The most different losses; further ones are counted together, because reasons may contain texts of the program.
const MAX_ENTRIES: usize = 256;

/// The counts of losses by kind and reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The number of lost things, by kind and then by reason.
    counts: BTreeMap<LossKind, BTreeMap<Cow<'static, str>, u64>>,
    /// Number of pairs of a kind and a reason; it stops at [`MAX_ENTRIES`].
    entries: usize,
}

impl Ledger {
    /// Adds `count` losses. Reasons are keys and should be stable phrases.
    pub fn add(&mut self, kind: LossKind, count: u64, reason: impl Into<Cow<'static, str>>) {
        if count == 0 {
            return;
        }
        let reason = reason.into();
        if let Some(total) = (self.counts.get_mut(&kind)).and_then(|r| r.get_mut(&reason)) {
            *total = total.saturating_add(count);
            return;
        }
        let (kind, reason) = if self.entries < MAX_ENTRIES {
            self.entries += 1;
            (kind, reason)
        } else {
            let kind = LossKind::Other("things".into());
            (kind, "more different reasons than are kept".into())
        };
        let total = self
            .counts
            .entry(kind)
            .or_default()
            .entry(reason)
            .or_default();
        *total = total.saturating_add(count);
    }

    /// Adds all losses of another ledger.
    pub fn merge(&mut self, other: &Ledger) {
        for loss in other.losses() {
            self.add(loss.kind, loss.count, loss.reason);
        }
    }

    /// Returns all losses, ordered by kind and reason.
    pub fn losses(&self) -> Vec<Loss> {
        let by_kind = self.counts.iter();
        let all = by_kind.flat_map(|(kind, reasons)| {
            reasons.iter().map(|(reason, count)| Loss {
                kind: kind.clone(),
                count: *count,
                reason: reason.clone(),
            })
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_added_up_by_kind_and_reason_and_listed_in_order() {
        let mut ledger = Ledger::default();
        ledger.add(LossKind::Waits, 2, "b");
        ledger.add(LossKind::Waits, 3, "a");
        ledger.add(LossKind::DispatchTimes, 1, "z");
        ledger.add(LossKind::Waits, 4, "b".to_owned());
        ledger.add(LossKind::Labels, 0, "nothing");
        let listed: Vec<String> = ledger.losses().iter().map(Loss::to_string).collect();
        assert_eq!(listed, ["1 dispatch times: z", "3 waits: a", "6 waits: b"]);
    }

    #[test]
    fn endless_reasons_are_counted_together() {
        let mut ledger = Ledger::default();
        for number in 0..1000 {
            ledger.add(LossKind::Labels, 1, format!("reason {number}"));
        }
        assert_eq!(ledger.losses().len(), MAX_ENTRIES + 1);
        let all: u64 = ledger.losses().iter().map(|loss| loss.count).sum();
        assert_eq!(all, 1000);
    }

    #[test]
    fn one_is_in_the_singular() {
        for (many, one) in [
            ("dispatch times", "dispatch time"),
            ("dispatches", "dispatch"),
            ("copies between devices", "copy between devices"),
            (
                "CUDA activities before a sudden end",
                "CUDA activity before a sudden end",
            ),
            ("kernels of dispatches", "kernel of dispatches"),
            ("processes", "process"),
            ("pieces of loaded code", "piece of loaded code"),
            ("CUDA work of a process", "CUDA work of a process"),
            (
                "graphs that the device can launch itself",
                "graph that the device can launch itself",
            ),
            ("rows of NVTX_EVENTS", "row of NVTX_EVENTS"),
            ("values of counters", "value of counters"),
            ("slices", "slice"),
            (
                "made up by the program's buses",
                "made up by the program's buses",
            ),
        ] {
            let kind = LossKind::from_text(many);
            assert_eq!(kind.for_count(1), one);
            assert_eq!(kind.for_count(2), many);
        }
    }

    #[test]
    fn a_kind_of_another_version_keeps_its_text() {
        let json = r#"{"what":"moon phases","count":1,"reason":"clouds"}"#;
        let loss: Loss = serde_json::from_str(json).unwrap();
        assert_eq!(loss.kind, LossKind::Other("moon phases".into()));
        assert_eq!(serde_json::to_string(&loss).unwrap(), json);
        let known = json.replace("moon phases", "waits");
        let loss: Loss = serde_json::from_str(&known).unwrap();
        assert_eq!(loss.kind, LossKind::Waits);
    }
}
