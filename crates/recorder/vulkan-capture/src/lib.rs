//! The Vulkan layer that captures.
