//! The names of MLX and of mlx-native, for programs that were written for them.
//!
//! A program that used mlx-native's `kernel_profile` and `metal_capture` writes `gapscope_sdk::mlx` in place of
//! `mlx_native`. The functions of [`kernel_profile`] are re-exported and documented in [`crate::kernel_profile`], and
//! those of [`metal`] in [`crate::capture`]. `docs/coming-from-mlx-native.md` and
//! `docs/coming-from-mx-metal-start-capture.md` describe the differences.

pub mod kernel_profile;
pub mod metal_capture;

pub use crate::environment::mlx_variables as variables;

/// The capture functions of MLX's `metal`.
pub mod metal {
    pub use crate::capture::{start_capture, stop_capture};
}
