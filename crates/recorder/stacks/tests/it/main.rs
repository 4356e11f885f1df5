//! Real programs, looked at from outside, and compared with what their own clock says.
#![cfg(target_os = "linux")]

mod stacks_of_native;
mod stacks_of_others;
mod stacks_of_python;
mod stacks_of_workers;
mod watched;
