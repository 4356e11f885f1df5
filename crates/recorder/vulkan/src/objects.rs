//! The program's objects: what is known of each, by its handle.

pub mod descriptors;
pub mod images;
pub mod kernels;
pub mod memory;
pub mod queues;
pub mod semaphores;
pub mod spirv;
