//! Puts a trace's work in order of time, by GPU, and indexes its tables by id.
//!
//! *Work* is what makes a device busy. A recording's sampling mode says what was timed. In the dispatch modes
//! (`dispatch`, `dispatch-serialised`) work is every dispatch, transfer and piece of opaque work with known times,
//! and also every command buffer that has times of its own while something inside it has none: such a command buffer
//! counts from its start to its end. In `pass` mode dispatches without times lie in passes, which are opaque work,
//! and are not work themselves. In `command-buffer` mode work is the command buffers with known times.
//!
//! [`Gpus`](crate::vocabulary::Gpus) says which devices are one GPU. Where the manifest lists no queues, work belongs to a GPU named
//! `unknown device`. Where the manifest lists some, work on any other queue has no known times: its row is damaged. `build` makes a [`Timeline`] from a trace; `packer` and `works` sort
//! its work and store it, and the other modules define its parts and the look-ups in them.

mod build;
mod content;
mod dispatches;
mod filter;
mod gaps;
mod gpu;
mod index;
mod nearly_sorted;
mod numbers;
mod packer;
mod submissions;
mod synchronous;
mod times;
mod work;
mod works;

pub use content::Content;
pub use dispatches::{DispatchColumns, Launched, Untimed};
pub use filter::LabelFilter;
pub use gaps::{Cursor, Gap};
pub use gpu::Gpu;
pub use index::Timeline;
pub use numbers::Numbers;
pub use submissions::{Standing, is_work};
pub use times::{CommandBufferTimes, OnUndefinedQueues, QueueOfGpu, Ran, SubmissionTimes};
pub use work::{Work, WorkKind};
pub use works::{Iter, Works};
