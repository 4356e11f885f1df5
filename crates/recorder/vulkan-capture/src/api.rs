//! Vulkan around the layer: instances, devices and their functions.

pub mod device;
pub mod features;
pub mod instance;
