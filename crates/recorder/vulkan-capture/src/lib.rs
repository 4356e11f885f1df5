//! Captures a program's GPU work as a Vulkan layer: writes a window of the work (the part between two moments) so
//! that `gapscope replay` can run that work again.
//!
//! The layer that records is another one, since inside a window this layer changes when work runs: one submission
//! at a time, each waited for. Outside of the window it only keeps what a window may need.
//!
//! - **From the start** the layer keeps what objects were made from, what descriptor sets hold and what command
//!   buffers consist of ([`objects`]). Buffers get one more usage: to be copied from. Pointers and signals of the
//!   program are left alone.
//! - **In the window** ([`window`]) a submission is resolved into records (`window::resolve`); the GPU copies the
//!   memory that the submission may access and whose content is not known (`window::staging`), and the layer writes
//!   it; the submission is passed on and waited for; what it may have written is copied and hashed. Memory that the
//!   host can write is compared before each submission.
//! - **What cannot be captured right** ends the window before that submission, with the reason.
//! - **No panic leaves an entry point** ([`gapscope_spool::hook::guard`]), and nothing is printed.
#![warn(clippy::undocumented_unsafe_blocks)]

mod api;
mod entry;
mod hooks;
mod interface;
mod objects;
mod window;

pub use entry::vkNegotiateLoaderLayerInterfaceVersion;
pub use interface::gapscope_interface;
