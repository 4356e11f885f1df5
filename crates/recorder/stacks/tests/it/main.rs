//! Real programs, looked at from outside, and compared with what their own clock says.
#![cfg(target_os = "linux")]

mod live_native;
mod live_python;
mod live_refused;
mod live_workers;
mod watched;
