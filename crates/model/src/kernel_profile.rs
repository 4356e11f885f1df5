//! The metrics in the profile of one CUDA kernel launch.
//!
//! The hook (gapscope's library in the recorded program) measures them, the session (gapscope's process that writes
//! the trace) stores them in the table `kernel_metrics`, and analyses find them by their names, which are those of
//! Nsight Compute, NVIDIA's kernel profiler.

mod metrics;
mod stall;
mod wanted;

pub use metrics::{GRID, METRICS, Metric, name as metric_name};
pub use stall::Stall;
pub use wanted::{Wanted, WantedError};

use crate::kind::kind;

kind! {
    /// The topic of a metric.
    MetricSection {
        /// Throughput as a share of the greatest.
        SpeedOfLight = "speed-of-light",
        /// Memory traffic and its sources.
        Memory = "memory",
        /// Activity of the arithmetic units.
        Compute = "compute",
        /// Warps on the multiprocessors.
        Occupancy = "occupancy",
        /// Reasons for which warps waited.
        Stalls = "stalls",
    }
}

kind! {
    /// The unit of a metric's value.
    MetricUnit {
        /// A count of things.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
        /// Bytes per second.
        BytesPerSecond = "bytes/s",
        /// A percentage from 0 to 100.
        Percent = "percent",
        /// Cycles per second.
        Hertz = "hertz",
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// A quotient of two counts.
        Ratio = "ratio",
    }
}

impl MetricUnit {
    /// Returns the unit that a metric's name implies, by the words before and after its first dot.
    ///
    /// ```
    /// use gapscope_model::kernel_profile::MetricUnit;
    /// let unit = MetricUnit::from_metric;
    /// assert_eq!(unit("dram__bytes_read.sum"), MetricUnit::Bytes);
    /// assert_eq!(unit("dram__bytes.sum.per_second"), MetricUnit::BytesPerSecond);
    /// assert_eq!(unit("sm__cycles_elapsed.avg.per_second"), MetricUnit::Hertz);
    /// assert_eq!(unit("sm__throughput.avg.pct_of_peak_sustained_elapsed"), MetricUnit::Percent);
    /// assert_eq!(unit("sm__inst_executed.avg.per_cycle_active"), MetricUnit::Ratio);
    /// assert_eq!(unit("sm__inst_executed.sum"), MetricUnit::Count);
    /// ```
    pub fn from_metric(name: &str) -> MetricUnit {
        let (base, suffix) = name.split_once('.').unwrap_or((name, ""));
        let bytes = base.contains("__bytes") || base.contains("_bytes");
        match () {
            () if base.ends_with("time_duration") => MetricUnit::Nanoseconds,
            () if suffix.contains("pct") => MetricUnit::Percent,
            () if suffix.ends_with("per_second") && bytes => MetricUnit::BytesPerSecond,
            () if suffix.ends_with("per_second") => MetricUnit::Hertz,
            () if suffix.contains("per_") || suffix.ends_with("ratio") => MetricUnit::Ratio,
            () if bytes => MetricUnit::Bytes,
            () => MetricUnit::Count,
        }
    }
}

/// The name of a [`HostCallKind::Recording`](crate::HostCallKind::Recording) call in which a kernel was profiled.
pub const PROFILING_CALL: &str = "profiling of a kernel";
