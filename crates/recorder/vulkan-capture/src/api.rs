//! Vulkan around the layer: devices and what the program asked them for.

pub mod device;
pub mod features;
