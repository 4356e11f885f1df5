//! CUPTI's profilers behind safe types, with a libcupti that is found and loaded at run time: planning and evaluating metrics
//! ([`Host`]), sampling counters beside programs ([`PmSampling`]), profiling single kernels ([`RangeProfiler`]), and sampling the
//! instructions that a context runs ([`PcSampling`]).
//!
//! Nothing is printed, and no library is ever unloaded, so that function pointers stay valid and tables of functions can be
//! copied. The structures are those of the headers of CUPTI 13.0; each states its size, which tells older and newer libraries
//! which fields exist.

mod data;
mod driver;
mod failure;
mod functions;
mod host;
mod layouts;
mod library;
mod pc_sampling;
mod pm_sampling;
mod range_profiler;
pub mod search;
mod shared_library;

pub use data::{CounterData, Metrics};
pub use driver::{Driver, DriverError, Uuid};
pub use failure::{Failure, code};
pub use host::{Host, ProfilerKind};
pub use library::{Cupti, LibraryError};
pub use pc_sampling::{
    CubinLibrary, PcLibrary, PcSamples, PcSampling, SamplingPace, StallReason, TakenSamples,
};
pub use pm_sampling::{Decoded, PmSampling, SampleCounts, SamplingSettings};
pub use range_profiler::RangeProfiler;
pub use shared_library::SharedLibrary;
