//! Tests the fake driver through the ordinary loader. Each test runs in a process of its own, because the driver
//! reads its configuration once.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "plain Vulkan calls, whose valid usage the driver under test checks"
)]

mod child;
mod gpu;

mod clocks;
mod device_loss;
mod loader;
mod memory;
mod misuse;
mod queues;
mod timing;
