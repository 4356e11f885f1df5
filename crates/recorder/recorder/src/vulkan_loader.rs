//! The names by which Vulkan's loader (the library between programs and drivers) is told to load the recording layer.

/// The name of the Vulkan layer that records.
pub const LAYER_NAME: &str = "VK_LAYER_GAPSCOPE_recorder";
/// The variable that names the layers to load, separated by colons.
pub const LAYERS: &str = "VK_INSTANCE_LAYERS";
