//! Tests of the SDK with programs that were written for other libraries.

mod mlx_native;
