//! What a trace says about its GPU: pure functions over a [`gapscope_trace::Trace`], without IO and without printing.
//!
//! One analysis is one module; [`Findings::of`] runs them all. Times are nanoseconds of the host's monotonic clock,
//! durations nanoseconds, sizes bytes, and every number has its unit in its name. What is not known is `None`, never 0.
//! Busy times are lengths of unions of intervals: overlapping work counts once.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod activity;
mod allocations;
pub mod bound_bytes;
pub mod busy;
pub mod code;
pub mod command_buffers;
pub mod conditions;
pub mod counters;
pub mod dataflow;
pub mod diff;
pub mod drift;
pub mod durations;
pub mod equal_work;
pub mod fill;
pub mod finding;
pub mod findings;
pub mod gaps;
mod host;
pub mod instructions;
pub mod intervals;
pub mod kernels;
pub mod labels;
pub mod lanes;
pub mod latency;
pub mod launches;
pub mod limits;
pub mod memory_timeline;
mod occupancy;
pub mod operators;
pub mod profiled;
pub mod quantity;
pub mod ranks;
pub mod samples;
pub mod thresholds;
pub mod timeline;
pub mod transfers;
pub mod under_label;
pub mod unread;
pub mod verdict;
pub mod vocabulary;
pub mod warm_up;

pub use activity::activity;
pub use counters::counters;
pub use findings::{Findings, Options};
pub use timeline::Timeline;
pub use under_label::UnderLabel;
pub use vocabulary::Vocabulary;
