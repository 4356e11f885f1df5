//! A stand-in for Apple's `xctrace`, for tests on machines that are not Macs. It records nothing: it writes the exports that xctrace
//! would write of a planted [`Scene`].
//!
//! The exports follow real ones in grammar, schemas and oddities ([`Quirks`]): columns and types are those of a Metal System Trace of
//! Instruments 27.2. The program `stand-in-xctrace` takes xctrace's arguments, and `stand-in-gpucapture` those of `gpucapture`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod document;
mod export;
mod quirks;
mod scene;
mod schemas;

pub use quirks::{Cut, Quirks};
pub use scene::{
    Allocation, CommandBuffer, DebugGroup, Encoder, EncoderKind, GpuRow, OtherWork, Process, Scene,
    Signpost, Thread,
};
pub use schemas::SCHEMAS;
