//! Samples real programs from outside and compares the samples with the programs' own clocks.
#![cfg(target_os = "linux")]

mod loaded_machine;
mod stacks_of_native;
mod stacks_of_others;
mod stacks_of_python;
mod stacks_of_workers;
mod watched;
