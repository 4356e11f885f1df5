//! The names of MLX and of mlx-native, for programs that come from there.
//!
//! Each is re-exported where it belongs, and does what the module there describes: the functions of [`kernel_profile`]
//! from [`crate::kernel_profile`], those of [`metal`] from [`crate::capture`]. `docs/coming-from-mlx-native.md` and
//! `docs/coming-from-mx-metal-start-capture.md` say what is different.

pub mod kernel_profile;
pub mod metal;
pub mod variables;
