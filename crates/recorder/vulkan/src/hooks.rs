//! Defines the functions that the program calls instead of the next layer's: the work of this layer in the hooks
//! that it shares with the layer that captures ([`objects`], [`commands`], [`submit`]), and hooks of its own, one
//! file for each kind of function.

pub mod bindings;
pub mod command;
pub mod commands;
pub mod host_calls;
pub mod images;
pub mod kernels;
pub mod labels;
pub mod memory;
pub mod objects;
pub mod opaque;
pub mod submit;
pub mod timed_calls;
pub mod transfers;
