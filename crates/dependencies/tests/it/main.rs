//! Captures made by hand, and what is found in them.

mod footprints;
mod program;
mod windows;
