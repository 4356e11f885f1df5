//! The library that the driver loads into a program, driven through its real entry points by the stub of CUDA: what it
//! records is compared with what the stub's devices really did.

mod clock;
mod damage;
mod endings;
mod graphs;
mod instructions;
mod labels;
mod launches;
mod objects;
mod operations;
mod others;
mod polls;
mod processes;
mod profiles;
mod recorded;
mod sources;
mod stub;
mod waits;
mod window;
