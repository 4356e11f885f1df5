//! Vulkan around the layer: what the next layer says of physical devices, what the layer adds to devices, and tables of functions that
//! only this layer hooks.

pub mod device_plan;
pub mod families;
pub mod features;
pub mod performance;
pub mod physical_device;
pub mod timed_calls;
pub mod work;

pub use gapscope_vulkan_layer::{arguments, functions, instance, loader};
