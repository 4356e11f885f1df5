//! Describes Vulkan around the layer: devices, what the program asked them for, and the commands that no capture can
//! hold.

pub mod device;
pub mod features;
pub mod refused;
