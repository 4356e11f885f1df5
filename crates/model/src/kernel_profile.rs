//! The profile of one launch of a CUDA kernel: which metrics it has, and what each says.
//!
//! The hook measures them, the session writes them to the table `kernel_metrics`, and analyses find them by their names, which
//! are those of Nsight Compute.

mod metrics;
mod stall;
mod wanted;

pub use metrics::{GRID, METRICS, Metric, name as metric_name};
pub use stall::Stall;
pub use wanted::{Wanted, WantedError};

use crate::kind::kind;

kind! {
    /// What a metric is about.
    MetricSection {
        /// How much of the greatest throughput the kernel reached.
        SpeedOfLight = "speed-of-light",
        /// What it moved, and from where.
        Memory = "memory",
        /// Which units computed.
        Compute = "compute",
        /// How many warps the multiprocessors had.
        Occupancy = "occupancy",
        /// What warps waited for.
        Stalls = "stalls",
    }
}

kind! {
    /// The unit of a metric's value.
    MetricUnit {
        /// Things without a unit of their own.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
        /// Bytes a second.
        BytesPerSecond = "bytes/s",
        /// A share: 0 to 100.
        Percent = "percent",
        /// Cycles a second.
        Hertz = "hertz",
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// A quotient of two counts.
        Ratio = "ratio",
    }
}

impl MetricUnit {
    /// The unit that a metric's name implies.
    ///
    /// ```
    /// use gapscope_model::kernel_profile::MetricUnit;
    /// let of = MetricUnit::of_metric;
    /// assert_eq!(of("dram__bytes_read.sum"), MetricUnit::Bytes);
    /// assert_eq!(of("dram__bytes.sum.per_second"), MetricUnit::BytesPerSecond);
    /// assert_eq!(of("sm__cycles_elapsed.avg.per_second"), MetricUnit::Hertz);
    /// assert_eq!(of("sm__throughput.avg.pct_of_peak_sustained_elapsed"), MetricUnit::Percent);
    /// assert_eq!(of("sm__inst_executed.avg.per_cycle_active"), MetricUnit::Ratio);
    /// assert_eq!(of("sm__inst_executed.sum"), MetricUnit::Count);
    /// ```
    pub fn of_metric(name: &str) -> MetricUnit {
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

/// What [`HostCallKind::Recording`](crate::HostCallKind::Recording) is called where a kernel was profiled.
pub const PROFILING_CALL: &str = "profiling of a kernel";
