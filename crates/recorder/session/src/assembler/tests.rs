//! Events in, rows out.

mod cuda;
mod hostile;
mod naming;
mod program;
mod work;

use program::Program;
