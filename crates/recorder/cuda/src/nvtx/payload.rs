//! Payloads: labels with values in C structures, whose layouts the program has registered. NCCL describes
//! its collectives this way.

mod data;
mod read;
pub mod register;
pub mod schemas;
mod shape;

pub use data::Data;
pub use read::read;
