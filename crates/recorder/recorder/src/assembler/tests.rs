//! Tests that events become the expected rows.

mod bindings;
mod conditions;
mod cuda;
mod hostile;
mod labels;
mod naming;
mod program;
mod semaphores;
mod work;

use program::Program;
