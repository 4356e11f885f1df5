//! What the program calls instead of the next layer: one file for each group of functions.

pub mod bindings;
pub mod command;
pub mod command_buffers;
pub mod command_pools;
pub mod commands;
pub mod descriptor_sets;
pub mod devices;
pub mod host_calls;
pub mod images;
pub mod instances;
pub mod kernels;
pub mod labels;
pub mod memory;
pub mod semaphores;
pub mod submit;
pub mod timed_calls;
pub mod transfers;
pub mod work;
