//! The environment variables of MLX and mlx-native, which are read like gapscope's own.

/// The variable that asks for a capture and holds its path: see [`crate::capture::CAPTURE_VARIABLES`].
pub const METAL_CAPTURE: &str = "MLX_METAL_CAPTURE";

/// The variable that switches the profiling of command buffers on: see
/// [`crate::kernel_profile::COMMAND_BUFFER_VARIABLES`].
pub const PROFILE_CB: &str = "MLX_PROFILE_CB";

/// The variable that switches the profiling of dispatches on: see [`crate::kernel_profile::DISPATCH_VARIABLES`].
pub const PROFILE_DISPATCH: &str = "MLX_PROFILE_DISPATCH";

/// The variable that asks for labels and for the sources of kernels: see [`crate::metal`].
pub const METAL_DEBUG: &str = "MLX_METAL_DEBUG";
