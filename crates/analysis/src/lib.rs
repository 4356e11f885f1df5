//! Explains a trace: pure functions from a [`Timeline`](gapscope_timeline::Timeline) to findings about its GPUs, without IO and
//! without printing.
//!
//! One analysis is one module; [`Findings::new`] runs them all. Times are nanoseconds of the host's monotonic clock,
//! durations nanoseconds, sizes bytes, and every number has its unit in its name. What is not known is `None`, never 0.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod activity;
mod awaited_work;
mod bound;
pub mod cause_note;
pub mod code;
pub mod command_buffers;
pub mod conditions;
mod contexts;
pub mod contradictions;
pub mod copy_sizes;
pub mod critical_path;
pub mod dataflow;
pub mod device_balance;
pub mod drift;
pub mod equal_work;
pub mod fill;
pub mod finding;
pub mod findings;
pub mod first_step;
pub mod gaps;
pub mod headline;
mod host_ranges;
pub mod instructions;
pub mod joint_verdict;
pub mod kernel_bytes;
mod kernel_limit;
pub mod kernels;
pub mod labels;
pub mod latency;
pub mod launch_sizes;
pub mod launches;
pub mod limits;
pub mod memory_owners;
pub mod memory_timeline;
mod occupancy;
pub mod operators;
pub mod profiled;
mod range_name;
mod recorded_waits;
pub mod samples;
pub mod several_ranks;
mod slices;
mod stacks;
pub mod steps;
mod touched_bytes;
pub mod transfers;
pub mod unread;
pub mod verdict;
mod waited_for;
pub mod warm_up;
pub mod what_if;
mod work_advice;

pub use activity::{activity, explained_activity};
pub use findings::{Findings, Options};
pub use what_if::gains::Replays;
