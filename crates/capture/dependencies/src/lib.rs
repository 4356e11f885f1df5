//! Finds which bytes each dispatch of a capture reads and writes, and which commands depend on which. A capture is
//! the recorded GPU commands of a program, with the contents of memory that they start from; its window is the
//! recorded stretch of the run.
//!
//! [`Dependencies::from_capture`] evaluates the address arithmetic of each kernel with the constants of each dispatch.
//! The bytes that a dispatch reads and writes are exact wherever no address depends on unknown data. Otherwise they
//! are all bytes that are bound, and [`Extent::bound`] says why. From these sets follow the edges between commands
//! ([`Graph`]), which of the edges barriers and semaphores order ([`Order`]), hazards, and barriers that nothing
//! needs.
//!
//! # Internals
//! `gapscope_spirv` reads a module, `kernel` evaluates it, and `footprint` returns the bytes of one dispatch.
//! `window` does so for all commands of a capture. `graph` finds the edges between commands, `order` the barriers and
//! semaphores that order the ends of each edge, and `findings` the hazards and the needless barriers.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod contents;
mod cuda;
mod findings;
mod footprint;
mod fusion;
mod graph;
mod json;
mod kernel;
mod order;
mod path;
mod scope;
mod traffic;
mod trail;
mod window;

pub use bytes::ByteSet;
pub use findings::{BarrierUse, Dependencies, Need};
pub use footprint::{BindingFootprint, Extent, Footprint, Grid, Limits, Reason};
pub use fusion::{Fusion, Refusal};
pub use graph::{Access, Edge, EdgeKind, Graph, Node, NodeKind};
pub use json::Json;
pub use kernel::machine::Run;
pub use order::Order;
pub use path::CriticalPath;
pub use scope::Scope;
pub use traffic::{Bandwidth, UnknownBandwidth};
pub use trail::{BindingTrail, Trail};
pub use window::trails;
