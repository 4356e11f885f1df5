//! The figures by which runs are compared (times, counts, sizes), with their names and units.

use gapscope_analysis::gaps::Cause;
use gapscope_timeline::vocabulary::Words;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A figure that two runs are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Metric {
    /// The time from the start of the first GPU work to the end of the last.
    WallTime,
    /// The time in which GPUs ran something, summed over GPUs.
    GpuTime,
    /// The time between pieces of work in which GPUs ran nothing, summed over GPUs.
    IdleTime,
    /// The idle time with one cause.
    IdleOf(Cause),
    /// The time that transfers took.
    TransferTime,
    /// The number of dispatches.
    Dispatches,
    /// The number of workgroups, summed over dispatches.
    Workgroups,
    /// The number of threads in these workgroups.
    Threads,
    /// The number of host calls that hand work to a queue.
    Submissions,
    /// The number of command buffers (CUDA: graph launches).
    CommandBuffers,
    /// The number of transfers.
    Transfers,
    /// The bytes that transfers wrote.
    TransferBytes,
    /// The bytes of the ranges bound for reading and writing, summed over dispatches.
    BoundBytes,
    /// The most device memory that was allocated at one time, summed over GPUs.
    MemoryPeak,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Pieces.
    Count,
}

impl Metric {
    /// All figures but the idle times of single causes.
    pub const WHOLE: [Metric; 13] = [
        Metric::WallTime,
        Metric::GpuTime,
        Metric::IdleTime,
        Metric::TransferTime,
        Metric::Dispatches,
        Metric::Workgroups,
        Metric::Threads,
        Metric::Submissions,
        Metric::CommandBuffers,
        Metric::Transfers,
        Metric::TransferBytes,
        Metric::BoundBytes,
        Metric::MemoryPeak,
    ];

    /// Returns the stable name of the figure in gates (limits that the user sets) and in JSON.
    pub fn key(self) -> String {
        match self {
            Metric::IdleOf(cause) => format!("idle_time({})", cause.as_str()),
            whole => whole.facts().0.to_owned(),
        }
    }

    /// Returns the figure whose stable name ([`key`](Metric::key)) is `key`.
    pub(super) fn from_key(key: &str) -> Option<Metric> {
        let parts = Cause::ALL.into_iter().map(Metric::IdleOf);
        let mut all = Metric::WHOLE.into_iter().chain(parts);
        all.find(|metric| metric.key() == key)
    }

    /// Returns the name of the figure for people, in the words of an API.
    pub fn name(self, words: &Words) -> String {
        match self {
            Metric::IdleOf(cause) => format!("idle: {}", cause.facts(words.api).name),
            Metric::Dispatches => words.dispatch.many.to_owned(),
            Metric::Workgroups => words.workgroup.many.to_owned(),
            Metric::Submissions => words.submission.many.to_owned(),
            Metric::CommandBuffers => words.command_buffer.many.to_owned(),
            whole => whole.facts().1.to_owned(),
        }
    }

    /// Returns the unit of a figure.
    pub const fn unit(self) -> Unit {
        self.facts().2
    }

    /// Returns the stable name of a figure, its name for people, and its unit. Those of a single cause's idle time are the ones of
    /// all idle time.
    const fn facts(self) -> (&'static str, &'static str, Unit) {
        match self {
            Metric::WallTime => ("wall_time", "start to end", Unit::Ns),
            Metric::GpuTime => ("gpu_time", "GPU busy", Unit::Ns),
            Metric::IdleTime | Metric::IdleOf(_) => ("idle_time", "GPU idle", Unit::Ns),
            Metric::TransferTime => ("transfer_time", "transfers", Unit::Ns),
            Metric::Dispatches => ("dispatches", "dispatches", Unit::Count),
            Metric::Workgroups => ("workgroups", "workgroups", Unit::Count),
            Metric::Threads => ("threads", "threads", Unit::Count),
            Metric::Submissions => ("submissions", "submissions", Unit::Count),
            Metric::CommandBuffers => ("command_buffers", "command buffers", Unit::Count),
            Metric::Transfers => ("transfers", "transfers", Unit::Count),
            Metric::TransferBytes => ("transfer_bytes", "transfer bytes", Unit::Bytes),
            Metric::BoundBytes => ("bound_bytes", "bytes bound", Unit::Bytes),
            Metric::MemoryPeak => ("memory_peak", "memory peak", Unit::Bytes),
        }
    }

    /// Returns true if the figure of a run of twice the work is twice as great.
    pub const fn grows_with_work(self) -> bool {
        !matches!(self, Metric::MemoryPeak)
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.key()
    }
}

/// The error for a name that no figure has.
#[derive(Debug, Error)]
#[error("no figure is called {0}")]
pub struct UnknownMetric(String);

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;

    fn try_from(key: String) -> Result<Metric, UnknownMetric> {
        Metric::from_key(&key).ok_or(UnknownMetric(key))
    }
}
