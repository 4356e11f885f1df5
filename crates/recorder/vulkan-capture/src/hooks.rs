//! What the program calls instead of the next layer's functions.

pub mod barriers;
pub mod bindings;
pub mod command_buffers;
pub mod commands;
pub mod descriptors;
pub mod devices;
pub mod instances;
pub mod kernels;
pub mod labels;
pub mod memory;
pub mod queries;
pub mod refused;
pub mod semaphores;
pub mod submit;
