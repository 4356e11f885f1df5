//! Events in, rows out.

mod bindings;
mod conditions;
mod cuda;
mod hostile;
mod labels;
mod naming;
mod program;
mod work;

use program::Program;
