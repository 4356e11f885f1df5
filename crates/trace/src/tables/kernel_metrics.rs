//! Profiles of single launches.

use crate::ids::*;
use crate::kinds::*;
use crate::table::table;
use std::sync::Arc;

table! {
    /// What was measured of launches of kernels that were profiled one by one (CUDA): a row for each metric.
    KernelMetrics of KernelMetric, "kernel_metric" in "kernel_metrics" {
        /// Number of the profiled launch in the trace, from 1.
        profile: u32,
        /// Id of the kernel.
        kernel: KernelId,
        /// Id of the submission (`submissions`) that launched it, which the row of the dispatch has too; absent where the record of
        /// the dispatch is missing.
        submission: Option<SubmissionId>,
        /// What the metric is about.
        section: MetricSection,
        /// Its name, as of Nsight Compute.
        metric: Arc<str>,
        /// Its value.
        value: f64,
        /// The unit of the value.
        unit: MetricUnit,
        /// How often the kernel ran for all metrics of the launch: each pass measures some of them.
        passes: u32,
    }
}
