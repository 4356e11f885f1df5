//! Times compute passes and dispatches of wgpu programs.
//!
//! A [`Profiler`] stands where the program makes its command encoders; the encoder that it gives out behaves as
//! wgpu's own, and so do its compute passes. Nothing else of the program changes:
//!
//! ```no_run
//! use gapscope_sdk::wgpu::Profiler;
//!
//! # fn example(adapter: &wgpu::Adapter, pipeline: &wgpu::ComputePipeline) -> Option<()> {
//! # let (device, queue): (wgpu::Device, wgpu::Queue) = None?;
//! // When the device is made: `required_features: Profiler::wanted_features(adapter.features())`.
//! let profiler = Profiler::new(&device, &queue);
//!
//! let mut encoder = profiler.encoder("forward"); // was: device.create_command_encoder(…)
//! {
//!     let mut pass = encoder.begin_compute_pass(&Default::default());
//!     pass.set_pipeline(pipeline);
//!     pass.dispatch_workgroups(64, 1, 1);
//! }
//! queue.submit([encoder.finish()]);
//!
//! // At any time, without waiting for the GPU:
//! println!("{}", profiler.profile().snapshot());
//! # Some(()) }
//! ```
//!
//! **Work that the profiler does not see.** Helper functions that take `&mut wgpu::CommandEncoder` or
//! `&mut wgpu::ComputePass` can be given the profiler's encoder or pass, because these dereference to wgpu's. What they
//! encode counts in the time of the command buffer and, between the boundaries of a pass that is timed there, in that
//! pass; single dispatches of theirs are not listed. The snapshot says so: how much of the command buffers the
//! dispatches cover, and how many command buffers hold such work. [`Profiler::scopes`] times parts of wgpu's own
//! encoders, compute passes and render passes, in any nesting.
//!
//! **Capabilities.** The work that can be timed depends on the features with which the device was created;
//! [`Profiler::capability`] and every result tell it:
//!
//! | features | times of |
//! |---|---|
//! | `TIMESTAMP_QUERY_INSIDE_PASSES` | each dispatch, and each pass from its first dispatch to its last |
//! | `TIMESTAMP_QUERY` alone (Apple's GPUs) | each pass; a dispatch only where its pass has no other |
//! | none | nothing; dispatches are counted |
//!
//! With `TIMESTAMP_QUERY_INSIDE_ENCODERS` the whole command buffer is timed as well; without it, its time is from the
//! first pass to the last. [`Profiler::at_most`] asks for less: with [`Capability::CommandBuffers`], two timestamps a
//! command buffer and nothing inside it.
//!
//! **Meaning of times.** A timestamp is written when everything before it has finished, so that the time of a
//! dispatch is from the end of the work before it to its own end. Dispatches that overlap on the device therefore
//! divide their time and do not count it twice.
//!
//! **Cost.** A dispatch takes two timestamps, and each timestamp a copy of 8 bytes at the end of the command buffer.
//! Results are mapped when wgpu reports them and read later; nothing waits for the GPU. Query sets are taken in
//! chunks from a pool, as many as the command buffer needs, so that nothing is cut off. If there is no memory, work
//! that is not timed is counted as a loss.
//!
//! **The host's clock.** wgpu cannot read both clocks at once, so device times are mapped by bounds: a command buffer
//! runs after it was finished by the program and before its end was seen. The error of the map is half the distance of
//! the tightest bounds, widened by how far the clocks may have drifted apart since; results state it.

mod batch;
mod capability;
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod capture;
mod chunk;
mod clock;
mod encoder;
mod inner;
mod names;
mod pass;
mod pending;
mod profiler;
mod results;
mod scope;
#[cfg(test)]
mod tests;

pub use capability::Capability;
pub use encoder::Encoder;
pub use pass::ComputePass;
pub use profiler::Profiler;
pub use scope::{OpenScope, Recorder, Scope, Scopes};
