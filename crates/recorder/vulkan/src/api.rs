//! Vulkan around the layer: the loader's interface, the next layer's functions, what it says of physical devices, and
//! what programs pass to their calls.

pub mod device_plan;
pub mod families;
pub mod features;
pub mod functions;
pub mod instance;
pub mod performance;
pub mod physical_device;
pub mod table;
pub mod timed_calls;
pub mod work;

pub use gapscope_vulkan_layer::{arguments, loader};
