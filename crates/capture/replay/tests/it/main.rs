//! Runs captures that tests write, on the software GPU.

mod captured;
mod fewer_barriers;
mod inspecting;
mod refused;
mod running;
mod tracing;
