//! The table of single launches' profiles.

use crate::ids::*;
use crate::kinds::*;
use crate::table::table;
use std::sync::Arc;

table! {
    /// Measurements of kernel launches that were profiled one by one (CUDA): a row for each metric.
    KernelMetrics of KernelMetric, "kernel_metric" in "kernel_metrics" {
        /// Number of the profiled launch in the trace, from 1.
        profile: u32,
        /// Id of the kernel.
        kernel: KernelId,
        /// Id of the submission (`submissions`) that launched it, which the row of the dispatch also has; absent
        /// where the record of the dispatch is missing.
        submission: Option<SubmissionId>,
        /// Topic of the metric.
        section: MetricSection,
        /// Name of the metric, as in Nsight Compute.
        metric: Arc<str>,
        /// Value of the metric.
        value: f64,
        /// The unit of the value.
        unit: MetricUnit,
        /// How often the kernel ran to measure all metrics of the launch: each pass measures some of them.
        passes: u32,
    }
}
