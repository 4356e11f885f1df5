//! Describes Vulkan around the layer: what a physical device offers, what the layer adds to a device that the
//! program creates, and tables of functions that are hooked only for their effect (`opaque`) or for their time
//! (`timed_calls`). The modules that both layers use are passed on from `gapscope_vulkan_layer`.

pub mod device_plan;
pub mod families;
pub mod features;
pub mod opaque;
pub mod performance;
pub mod physical_device;
pub mod timed_calls;

pub use gapscope_vulkan_layer::{arguments, functions, instance, loader};
