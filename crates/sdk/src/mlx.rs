//! The names of MLX and of mlx-native, for programs that were written for them.
//!
//! A program that used mlx-native's `kernel_profile` and `metal_capture` writes `gapscope_sdk::mlx` where it had `mlx_native`.
//! Each function is re-exported where it belongs, and does what the module there describes: those of [`kernel_profile`]
//! from [`crate::kernel_profile`], those of [`metal`] from [`crate::capture`]. `docs/coming-from-mlx-native.md` and
//! `docs/coming-from-mx-metal-start-capture.md` say what is different.

pub mod kernel_profile;
pub mod metal;
pub mod metal_capture;
pub mod variables;
