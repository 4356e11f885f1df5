//! Initialises the driver, and loads the tool that the environment names, as the driver does inside the first cuInit.

use super::{SUCCESS, driver};
use crate::config::config;
use crate::cupti;
use crate::records::Device;
use libloading::Library;
use std::ffi::c_int;
use std::mem::ManuallyDrop;

const NAME: &std::ffi::CStr = c"Fake GPU";
const NAME_OF_PART: &std::ffi::CStr = c"Fake GPU MIG 1g.18gb";

/// Returns the number of devices, `FAKE_CUDA_DEVICES`: 1 by default.
pub fn devices() -> u32 {
    std::env::var("FAKE_CUDA_DEVICES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(1)
}

pub fn initialise() -> c_int {
    {
        let mut driver = driver();
        if driver.pid != 0 {
            // A forked child cannot initialise the driver again.
            return if driver.pid == std::process::id() {
                SUCCESS
            } else {
                super::NOT_INITIALIZED
            };
        }
        driver.pid = std::process::id();
    }
    if devices() == 0 {
        return super::NO_DEVICE;
    }
    inject();
    let mut cupti = cupti::state();
    for id in 0..devices() {
        let device = device(id);
        cupti.record_when(config().late_device, crate::records::DEVICE, &device);
    }
    SUCCESS
}

fn inject() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH").filter(|p| !p.is_empty()) else {
        return;
    };
    // SAFETY: as the real driver does: the tool's function takes nothing and returns an int.
    unsafe {
        let Ok(tool) = Library::new(path).map(ManuallyDrop::new) else {
            return;
        };
        if let Ok(start) = tool.get::<extern "C" fn() -> c_int>(b"InitializeInjection") {
            start();
        }
    }
}

fn gpu_uuid(id: u32) -> [u8; 16] {
    [id as u8 + 1; 16]
}

/// Returns the driver's UUID of a device; a part of a GPU has its own.
pub fn uuid(id: u32) -> [u8; 16] {
    match config().parts {
        true => [0x70 + id as u8; 16],
        false => gpu_uuid(id),
    }
}

fn device(id: u32) -> Device {
    let parts = config().parts;
    Device {
        kind: crate::records::DEVICE,
        flags: 0,
        global_memory_bandwidth: 4_800_000_000,
        global_memory_size: 150_000_000_000,
        constant_memory_size: 65_536,
        l2_cache_size: 62_914_560,
        threads_per_warp: 32,
        core_clock_rate: 1_980_000,
        memcpy_engines: 3,
        multiprocessors: 132,
        max_ipc: 4,
        max_warps: 64,
        max_blocks: 32,
        max_shared_memory: 233_472,
        max_registers: 65_536,
        max_registers_per_block: 65_536,
        max_shared_memory_per_block: 49_152,
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [2_147_483_647, 65_535, 65_535],
        capability: [9, 0],
        id,
        ecc_enabled: 1,
        uuid: gpu_uuid(id),
        name: name().as_ptr(),
        is_cuda_visible: 1,
        is_mig_enabled: parts.into(),
        reserved: [0; 6],
        gpu_instance_id: if parts { 7 } else { 0 },
        compute_instance_id: if parts { 1 } else { 0 },
        mig_uuid: if parts { uuid(id) } else { [0; 16] },
        is_numa_node: 0,
        numa_id: 0,
    }
}

pub fn version() -> c_int {
    config().driver_version
}

/// Returns the name of a device.
pub fn name() -> &'static std::ffi::CStr {
    if config().parts { NAME_OF_PART } else { NAME }
}
