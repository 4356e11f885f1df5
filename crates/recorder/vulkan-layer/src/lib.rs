//! Implements the common parts of gapscope's two Vulkan layers (libraries between a program and its driver: one
//! records, one captures). The hooks take the calls of a program and pass them on to the next layer; the meaning of
//! the calls reaches the layer through the traits of [`layer`].
//!
//! Each module uses only those above it in this list:
//!
//! 1. [`loader`]: the loader's interface; [`arguments`] and [`handles`]: what programs pass; [`table`] and
//!    `opaque_commands`: tables of functions that ash does not know.
//! 2. [`functions`]: the next layer's functions of a device; [`instance`], [`physical_device`] and [`devices`].
//! 3. [`command_pools`], [`descriptors`], [`barriers`], [`command`] and [`submissions`]: what programs make and record.
//! 4. [`layer`]: what a layer does in a hook. [`hooks`]: the functions that the program calls. [`entry`]: how the
//!    loader finds the hooks. [`registry`]: checks, for the layers' tests, that no command of Vulkan is forgotten.
#![warn(clippy::undocumented_unsafe_blocks)]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "a hook that a macro defines is unsafe code as a whole"
)]

pub mod arguments;
pub mod barriers;
pub mod command;
pub mod command_pools;
pub mod descriptors;
pub mod devices;
pub mod entry;
pub mod functions;
pub mod handles;
pub mod hooks;
pub mod instance;
pub mod layer;
pub mod loader;
pub mod opaque_commands;
pub mod physical_device;
pub mod registry;
pub mod submissions;
pub mod table;
