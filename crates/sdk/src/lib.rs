//! Captures windows of GPU work and profiles kernels from inside a Rust program.
//!
//! - [`capture`]: captures a window of GPU work, chosen by environment, by code, by count or by signal.
//! - [`kernel_profile`]: GPU times by label and kernel, with percentiles, drift and losses; writes gapscope traces.
//! - `wgpu` (feature `wgpu`): times compute passes and dispatches of wgpu programs.
//! - [`metal`]: captures and times on Metal, natively.
//! - [`label`]: names the program's work for recordings; `tracing` (feature `tracing`) does it by spans.
//! - [`mlx`]: the names of MLX and mlx-native, for programs that come from there.
//!
//! All functions are harmless where they do not apply: without a hook in the process, without the environment
//! variables, or without a capable device, the program runs on and learns why nothing was captured or timed.
#![deny(missing_docs)]

pub mod capture;
mod environment;
mod host_clock;
mod interval;
pub mod kernel_profile;
pub mod label;
pub mod metal;
pub mod mlx;
mod passes;
mod text;
#[cfg(feature = "tracing")]
pub mod tracing;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use capture::{Capture, Captured, NotCaptured, Trigger};
