//! Programs that come from elsewhere.

mod mlx_native;
