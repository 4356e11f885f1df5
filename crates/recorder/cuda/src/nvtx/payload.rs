//! Decodes payloads: labels with values in C structures, whose layouts the program has registered. NCCL describes its collectives in
//! this way.

mod data;
mod read;
pub mod register;
pub mod schemas;
mod shape;

pub use data::PayloadData;
pub use read::read;
