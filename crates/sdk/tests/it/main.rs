//! Tests of the SDK with programs that were written for other libraries.

mod device;
mod mlx_metal;
mod mlx_native;
