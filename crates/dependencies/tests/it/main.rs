//! Captures made by hand, and what is found in them.

mod footprints;
mod hostile;
mod modules;
mod program;
mod windows;
