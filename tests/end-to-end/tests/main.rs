//! Tests the product as users have it: the built `gapscope` with its hooks. Programs of Vulkan run through the real loader, on
//! the software GPU (lavapipe) and on the fake driver, those of CUDA on a stub of its libraries, and recordings of Metal with
//! stand-ins for Apple's tools. Other tests take traces through commands (`view`, `mcp`, `import`, ...) and real clients.
//!
//! `cargo xtask test` builds and installs the programs that these tests start. The tests run one at a time, because
//! they measure time.
#![forbid(unsafe_code)]

mod baseline;
mod bench_device;
mod capture;
#[path = "../../../crates/capture/replay/tests/it/captured.rs"]
mod captured;
mod captured_programs;
mod captures;
mod causes;
mod client;
mod command_line;
mod conditions;
mod counters;
mod counts;
mod cuda;
mod cut_spools;
mod deps;
mod diff;
mod docs;
mod doctor;
mod driver;
mod endings;
mod equal_work;
mod explain;
mod fake_driver;
mod fleet;
mod fusion;
mod gfxreconstruct;
mod hostile;
mod import;
mod losses;
mod mcp;
mod metal;
mod product;
mod readers;
mod real_programs;
mod recording;
mod replay;
mod schema;
mod sdk;
mod stacks;
mod stolen;
mod truth;
mod validation;
mod view;
mod vulkan_counters;
mod vulkan_registry;
mod vulkan_work;
mod waits;
mod windows;
