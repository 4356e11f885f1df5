//! Finds the dependencies of captures that tests write.

mod footprints;
mod hostile;
mod left_out;
mod modules;
mod program;
mod windows;
