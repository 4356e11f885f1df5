//! Runs a capture on a Vulkan device.
