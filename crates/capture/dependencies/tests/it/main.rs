//! Captures made by hand, and what is found in them.

mod footprints;
mod hostile;
mod left_out;
mod modules;
mod program;
mod windows;
