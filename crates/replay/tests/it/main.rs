//! Captures written by hand, run on the software GPU.

mod captured;
mod inspecting;
mod refused;
mod running;
mod tracing;
