//! The targets: each feeds its input to one part of gapscope, and checks what that promises.

pub mod capture;
pub mod database;
pub mod events;
pub mod imported;
pub mod interpreter;
pub mod kineto;
pub mod manifest;
pub mod rows;
pub mod spool;
pub mod table;
pub mod xctrace;

mod assembly;
mod fixture;
/// Makes databases of rows as text, as the tests of the import do.
#[path = "../../crates/import/tests/it/database.rs"]
pub(crate) mod planted;
mod wire;

use crate::Target;

/// All targets.
pub const ALL: [Target; 15] = [
    manifest::TARGET,
    table::TARGET,
    rows::TARGET,
    events::TARGET,
    spool::TARGET,
    xctrace::TARGET,
    kineto::TARGET,
    capture::TARGET,
    database::TARGET,
    imported::PERFETTO,
    imported::XPLANE,
    imported::GGML,
    imported::MEMORY_SNAPSHOT,
    imported::COUNTERS_CSV,
    interpreter::TARGET,
];
