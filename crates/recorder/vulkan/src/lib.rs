//! The gapscope Vulkan layer: writes what a program asks of its GPU, and when the GPU did it, to a spool.
//!
//! - **Nothing of the program is changed.** Handles are the driver's own, nothing is wrapped; no fence, semaphore or
//!   wait is added. What is added: timestamps inside the program's command buffers, command buffers of ours around
//!   those that may run twice at once, the extension that reads both clocks, and host query reset.
//! - **Results are asked for by a thread of ours**, each with a word that says whether it is there. Where asking makes
//!   the driver wait for the device (llvmpipe), they are copied to mapped memory inside the command buffer instead;
//!   that copy holds the device up, so it is not done elsewhere ([`queries::Delivery`]).
//! - **The hot path** (`vkCmd*`) takes no lock: a command buffer is externally synchronised, so its state belongs to
//!   the calling thread. It appends a 24-byte command to that state; whole blocks go to the spool.
//! - **No panic leaves an entry point** ([`gapscope_spool::hook::guard`]); what cannot be measured is passed on and counted as a loss.
//!
//! Reading order: [`entry`] (how the loader finds us), [`device`], [`command_buffer`] and [`commands`] (recording),
//! [`queries`] (timestamps), [`submit`] and [`harvest`] (instances and their results).
#![warn(clippy::undocumented_unsafe_blocks)]

mod barriers;
mod bindings;
mod brackets;
mod clock;
mod command_buffer;
mod command_pool;
mod commands;
mod descriptor_sets;
mod device;
mod entry;
mod features;
mod handles;
mod harvest;
mod host_calls;
mod images;
mod instance;
mod interface;
mod kernels;
mod labels;
mod loader;
mod memory;
mod next;
mod opaque;
mod queries;
mod recorder;
mod spirv;
mod submit;
mod timing;
mod transfers;
