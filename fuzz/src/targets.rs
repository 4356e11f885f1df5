//! The targets.

pub mod capture;
pub mod events;
pub mod kineto;
pub mod manifest;
pub mod rows;
pub mod spool;
pub mod table;
pub mod xctrace;

mod assembly;
mod fixture;

use crate::Target;

/// All of them.
pub const ALL: [Target; 8] = [
    manifest::TARGET,
    table::TARGET,
    rows::TARGET,
    events::TARGET,
    spool::TARGET,
    xctrace::TARGET,
    kineto::TARGET,
    capture::TARGET,
];
