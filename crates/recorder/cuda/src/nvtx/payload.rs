//! Decodes payloads: values in C structures that the program attaches to labels, and whose layouts it has
//! registered. NCCL describes its collectives (operations of several ranks, such as an all-reduce) in this way.

mod data;
mod read;
pub mod register;
pub mod schemas;
mod shape;

pub use data::PayloadData;
pub use read::read;
