//! Defines hooks, functions that the program calls instead of those of the next layer (the next library on the way to
//! the driver): the work of this layer in the hooks that it shares with the layer that records ([`objects`],
//! [`commands`], [`submit`]), and hooks of its own.

pub mod barriers;
pub mod bindings;
pub mod command;
pub mod commands;
pub mod events;
pub mod kernels;
pub mod memory;
pub mod objects;
pub mod queries;
pub mod refused;
pub mod submit;
