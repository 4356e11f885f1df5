//! Takes what programs called and what their devices did, and gives the rows of a trace.
//!
//! Every producer of traces uses this crate: the recorder's session while a program runs, importers, replay and the
//! SDK. A [`TimelineBuilder`] holds the state of one process. Its inputs are [`ApiCall`]s, [`DeviceWork`], labels,
//! [`Overhead`]s and stream events, in any order: the call and the work of a launch wait for each other. A recording
//! bounds the memory of that waiting ([`Bounds::LIVE`]); its state can be serialised for a checkpoint. A [`Recorded`]
//! program, of which everything is at hand, is put in order of time and goes the same way without bounds.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounds;
mod builder;
mod event_waits;
mod graph_bodies;
mod graph_nodes;
mod host_wait_rows;
mod host_waits;
mod input;
pub mod kernel_accesses;
mod labels;
mod launches;
pub mod memory_snapshot;
mod output;
mod overheads;
mod polls;
mod recorded;
pub mod rows;
mod slots;
mod stream_captures;

pub use bounds::Bounds;
pub use builder::{Finished, ProfiledLaunch, TimelineBuilder};
pub use event_waits::{EventOccurrence, StreamPlace};
pub use gapscope_model::{GraphChange, GraphId, GraphNodeId};
pub use input::{
    ApiCall, CallQueue, Correlation, CorrelationWidener, DeviceWork, DeviceWorkKind, Function,
    FunctionId,
};
pub use labels::{
    CategoryId, Forgotten, LabelDomain, LabelKey, LabelScope, LabelStart, ProcessRangeId,
    ThreadLabels,
};
pub use output::{Ids, Joined, LabelRows, Observer, Output, Reasons};
pub use overheads::Overhead;
pub use polls::Polls;
pub use recorded::{
    FileReasons, HostEventWait, HostRange, MadeGraph, Recorded, RowSink, Shared, StreamEvent,
};
pub use rows::{CoveringSpan, TransferFacts, WorkPlace};
