//! Keeps the state of the program's objects, such as buffers and kernels, by their handles.

pub mod awaited;
pub mod descriptors;
pub mod images;
pub mod kernels;
pub mod memory;
pub mod queues;
pub mod semaphores;
