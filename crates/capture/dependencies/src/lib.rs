//! What each dispatch of a capture reads and writes, and what depends on what.
//!
//! [`Dependencies::of_capture`] evaluates the address arithmetic of each kernel with the constants of each dispatch, so that the
//! bytes that it reads and writes are exact wherever no address depends on data that is not known; where one does, they are what
//! is bound, and [`Extent::bound`] says why. From these sets follow the edges between commands ([`Graph`]), which of them barriers
//! and semaphores order ([`Order`]), hazards, and barriers that nothing needs.
//!
//! # Internals
//! `gapscope_spirv` reads a module, `kernel` follows it, `footprint` says what one dispatch reaches, `window` does so for the commands of a
//! capture, `graph` finds the edges between them, `order` what orders these, `findings` what that means.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod contents;
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
pub use order::Order;
pub use path::CriticalPath;
pub use scope::Scope;
pub use traffic::Bandwidth;
pub use trail::{BindingTrail, Run, Trail, trails};
