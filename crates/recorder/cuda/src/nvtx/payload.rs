//! Decodes payloads: values in C structures that the program attaches to labels, and whose layouts (schemas) it has
//! registered. NCCL describes its collectives (operations of several ranks, such as an all-reduce) in this way.
//!
//! The program registers schemas through `register`, and `schemas` keeps their shapes by id. [`PayloadData`] is a
//! payload as the program passes it; [`read()`] turns the payloads of a label into text.

mod data;
mod read;
pub mod register;
pub mod schemas;
mod shape;

pub use data::PayloadData;
pub use read::read;
