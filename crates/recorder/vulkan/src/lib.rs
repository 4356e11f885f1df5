//! The gapscope Vulkan layer: writes what a program asks of its GPU, and when the GPU did it, to a spool.
//!
//! - **Nothing of the program is changed.** Handles are the driver's own, nothing is wrapped; no fence, semaphore or
//!   wait is added. What is added: timestamps with the copies of their results inside the program's command buffers,
//!   command buffers of ours around those that may run twice at once, and the extension that reads both clocks.
//! - **Results leave the GPU by `vkCmdCopyQueryPoolResults`** into mapped memory of ours, where an availability word
//!   beside each value says that it has arrived. Nothing is asked of the driver for it (polling query pools waits for
//!   the device on some drivers).
//! - **The hot path** (`vkCmd*`) takes no lock: a command buffer is externally synchronised, so its state belongs to
//!   the calling thread. It appends a 24-byte command to that state; whole blocks go to the spool.
//! - **No panic leaves an entry point** ([`guard`]); what cannot be measured is passed on and counted as a loss.
//!
//! Reading order: [`entry`] (how the loader finds us), [`device`], [`command_buffer`] and [`commands`] (recording),
//! [`queries`] (timestamps), [`submit`] and [`harvest`] (instances and their results).
#![warn(clippy::undocumented_unsafe_blocks)]

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
mod guard;
mod handles;
mod harvest;
mod host_calls;
mod instance;
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
mod transfers;
