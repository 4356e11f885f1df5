//! Captures windows of GPU work and profiles kernels from inside a Rust program.
//!
//! - [`capture`]: capture a window of GPU work, chosen by environment, by code, by count or by signal.
//! - [`kernel_profile`]: GPU times by label and kernel, with percentiles, drift and losses; writes gapscope traces.
//! - [`wgpu`](crate::wgpu) (feature `wgpu`): times compute passes and dispatches of wgpu programs.
//! - [`metal`]: captures and times on Metal, natively.
//! - [`label`]: name what the program does, so that recordings say it.
//! - [`mlx`]: the names of MLX and mlx-native, for programs that come from there.
//!
//! Everything here is harmless where it does not apply: without a hook in the process, without the environment
//! variables, without a capable device, the program runs on and is told why nothing was captured or timed.
#![deny(missing_docs)]

pub mod capture;
mod environment;
mod interval;
pub mod kernel_profile;
pub mod label;
pub mod metal;
pub mod mlx;
mod passes;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use capture::{Capture, Captured, NotCaptured, Trigger};
