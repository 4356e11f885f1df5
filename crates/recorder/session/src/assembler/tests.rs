//! Events in, rows out.

mod bindings;
mod cuda;
mod hostile;
mod labels;
mod naming;
mod program;
mod work;

use program::Program;
