//! The targets.

pub mod capture;
pub mod counters_csv;
pub mod database;
pub mod events;
pub mod ggml;
pub mod interpreter;
pub mod kineto;
pub mod manifest;
pub mod perfetto;
pub mod rows;
pub mod spool;
pub mod table;
pub mod xctrace;
pub mod xplane;

mod assembly;
mod fixture;
mod imported;
mod wire;

use crate::Target;

/// All targets.
pub const ALL: [Target; 14] = [
    manifest::TARGET,
    table::TARGET,
    rows::TARGET,
    events::TARGET,
    spool::TARGET,
    xctrace::TARGET,
    kineto::TARGET,
    capture::TARGET,
    database::TARGET,
    perfetto::TARGET,
    xplane::TARGET,
    ggml::TARGET,
    counters_csv::TARGET,
    interpreter::TARGET,
];
