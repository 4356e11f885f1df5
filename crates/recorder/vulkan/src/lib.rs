//! Records what a program does with Vulkan. The loader puts this layer (a library) between a program and its driver; the
//! layer writes to a spool what the program asks of its GPU, and when the GPU did that.
//!
//! - **Nothing of the program is changed.** Handles are the driver's own, nothing is wrapped; no fence, semaphore or
//!   wait is added. The layer adds timestamps inside the program's command buffers, command buffers of its own around
//!   those that may run twice at once, the extension that reads both clocks, and host query reset.
//! - **A thread of the layer asks for results**, each with a word that says whether it has arrived. Where asking
//!   makes the driver wait for the device (llvmpipe), the command buffer copies them to mapped memory instead; that
//!   copy holds the device up, so it is not done elsewhere ([`api::families::Delivery`]).
//! - **The hot path** (`vkCmd*`) takes no lock: a command buffer is externally synchronised, so its state belongs to
//!   the calling thread. A hook appends a 24-byte command to that state; whole blocks go to the spool.
//! - **No panic leaves an entry point** ([`gapscope_spool::hook::guard`]); what cannot be measured is passed on and
//!   counted as a loss.
//!
//! # Internals
//!
//! Each module uses only those above it in this list; no two modules use each other, which `cargo xtask tidy` checks.
//!
//! 1. [`recorder`]: the spool, the ids and the mode, which the whole process shares; [`polls`] and [`host_call`]: the
//!    times of host calls.
//! 2. [`api`]: Vulkan around the layer: physical devices, what is added to devices, and tables of functions.
//! 3. [`objects`]: what is known of the program's buffers, kernels, descriptor sets and other objects. [`timing`]:
//!    queries, the clock and the thread that collects results.
//! 4. [`device`]: one logical device, composed of these; [`devices`]: all of them.
//! 5. [`command_buffer`] and [`command_buffers`]: the state of command buffers. [`submission`]: what a submission
//!    runs.
//! 6. [`hooks`]: the functions that the program calls instead of the next layer's. Only here does the program's
//!    thread enter.
//! 7. [`entry`]: how the loader finds the hooks; [`interface`]: the functions that the program may call by itself.
#![warn(clippy::undocumented_unsafe_blocks)]

mod api;
mod command_buffer;
mod command_buffers;
mod device;
mod devices;
mod entry;
mod hooks;
mod host_call;
mod interface;
mod objects;
mod polls;
mod recorder;
mod submission;
mod submitted;
mod timing;

use gapscope_vulkan_layer::handles;
