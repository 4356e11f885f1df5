//! Events in, rows out.

mod hostile;
mod naming;
mod program;
mod work;

use program::Program;
