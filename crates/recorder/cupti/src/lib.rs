//! CUPTI's metrics of hardware units, with a libcupti that is found and loaded at run time: the host's part, which plans and
//! evaluates them ([`Host`]), sampling beside programs ([`PmSampling`]) and profiling of single kernels ([`RangeProfiler`]); and samples
//! of the instructions that a context runs ([`PcSampling`]).
//!
//! Nothing is printed, and no library is unloaded again, so that what is looked up stays valid and all tables of functions are
//! copies. Structures are those of the headers of CUPTI 13.0; each tells its own size, by which older and newer libraries know
//! which fields are there.

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

pub use data::{CounterData, Metrics};
pub use driver::{Driver, Uuid};
pub use failure::{Failure, code};
pub use host::{Host, Kind};
pub use library::{Cupti, Missing, preload_host_library};
pub use pc_sampling::{CubinLibrary, Pace, Pc, PcLibrary, PcSampling, Reason, Taken};
pub use pm_sampling::{Append, Counts, Decoded, PmSampling, SamplingSettings, StopReason};
pub use range_profiler::{Range, RangeProfiler, RangeSettings, Replay, Stopped};
