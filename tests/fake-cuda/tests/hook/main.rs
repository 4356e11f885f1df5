//! Drives the library that the driver loads into a program through its real entry points, by the stub of CUDA. What it records is
//! compared with what the stub's devices really did.

mod clock;
mod compute;
mod damage;
mod endings;
mod graphs;
mod instructions;
mod labels;
mod launches;
mod loaded_modules;
mod objects;
mod operations;
mod others;
mod polls;
mod processes;
mod profiles;
mod recorded;
mod stub;
mod waits;
mod window;
