//! Indexes a trace by time: its work by GPU and queue, busy time, what host threads did, counters, and the names of things.
//!
//! The input is a [`gapscope_trace::Trace`], the main output a [`Timeline`]. Analyses and exports read it; it explains nothing
//! itself. All functions are pure: no IO and no printing. Times are nanoseconds of the host's monotonic clock, durations
//! nanoseconds, sizes bytes, and every number has its unit in its name. What is not known is `None`, never 0. Busy times are
//! lengths of unions of intervals: overlapping work counts once.
//!
//! A *kernel* is a program for the GPU, a *dispatch* one run of it. A *command buffer* holds dispatches and transfers
//! that were submitted together; *opaque work* is timed as a whole, such as a render pass. A *submission* is what one
//! call of a host thread hands to a *queue* of a device, and a *label* is a name that the program gave to a part of
//! its work.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod allocations;
pub mod bound_bytes;
pub mod busy;
pub mod collectives;
pub mod command;
pub mod counters;
pub mod durations;
pub mod host;
pub mod intervals;
pub mod label_match;
pub mod lanes;
pub mod launch_size;
pub mod lost_work;
pub mod nearby;
pub mod quantity;
pub mod rank_list;
pub mod similar;
pub mod submit_calls;
pub mod thresholds;
mod timeline;
pub mod unknown_counts;
pub mod vocabulary;

pub use counters::counters;
pub use timeline::{
    CommandBufferTimes, Content, Cursor, DispatchColumns, Gap, Gpu, Iter, LabelFilter, Launched,
    Numbers, OnUndefinedQueues, QueueOfGpu, Ran, Standing, SubmissionTimes, Timeline, Untimed,
    Work, WorkKind, Works, is_work,
};
pub use vocabulary::Vocabulary;
