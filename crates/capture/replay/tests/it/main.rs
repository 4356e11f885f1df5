//! Captures written by hand, run on the software GPU.

mod captured;
mod fewer_barriers;
mod inspecting;
mod refused;
mod running;
mod tracing;
