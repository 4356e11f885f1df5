//! Captures written by hand, run on the software GPU.

mod captured;
mod running;
