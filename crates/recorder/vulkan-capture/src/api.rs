//! Describes Vulkan around the layer: devices, the features that the program asked of them, and the commands that
//! no capture can hold.

pub mod device;
pub mod features;
pub mod refused;
