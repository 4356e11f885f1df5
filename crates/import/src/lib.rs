//! Imports the files of other profilers as traces.
//!
//! [`import`] recognises by their content which tool made the files, and writes a trace of them. The table
//! [`IMPORTERS`] has an [`Importer`] for each tool; [`xctrace`] reads the exports that Apple's `xctrace export`
//! writes of a Metal System Trace. A file that is torn, damaged or of another version is imported as far as it can be
//! read: the losses and notes of the trace say what is missing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod counters_csv;
mod error;
mod functions;
pub mod ggml;
mod importer;
mod inventory;
pub mod kineto;
pub mod nsys;
mod output;
pub mod perfetto;
mod profile;
mod protobuf;
mod rocm;
pub mod rocpd;
pub mod rocprofv3;
mod sqlite;
mod transfers;
pub mod xctrace;
pub mod xplane;

pub use error::Error;
pub use importer::{Importer, Options, import};
pub use output::{Imported, NewTrace, Output, Progress};

/// All importers, in the order in which they are asked whether they recognise the files.
pub const IMPORTERS: &[Importer] = &[
    xctrace::IMPORTER,
    kineto::IMPORTER,
    nsys::IMPORTER,
    perfetto::IMPORTER,
    rocpd::IMPORTER,
    rocprofv3::IMPORTER,
    xplane::IMPORTER,
    counters_csv::IMPORTER,
    ggml::IMPORTER,
];
