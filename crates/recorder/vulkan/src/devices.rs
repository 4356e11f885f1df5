//! The devices of the process, found by their handles.

use crate::api::functions::DeviceFunctions;
use crate::api::instance::Instance;
use crate::api::loader::{self, GetDeviceProcAddr};
use crate::device::Device;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

static DEVICES: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

struct Entry {
    key: usize,
    device: &'static Device,
    /// The next layer's vkGetDeviceProcAddr.
    get: GetDeviceProcAddr,
}

/// Devices that are not recorded: all that they need is the next layer's vkGetDeviceProcAddr.
static UNRECORDED: RwLock<Vec<(usize, GetDeviceProcAddr)>> = RwLock::new(Vec::new());

/// The process that made a device last.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Keeps a device.
///
/// # Safety
/// Its handle is live, and `get` belongs to the next layer.
pub unsafe fn add(device: &'static Device, get: GetDeviceProcAddr) {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(device.functions.device.as_raw()) };
    DEVICES
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Entry { key, device, get });
    stop_at_exit();
}

/// Keeps a device that is not recorded.
///
/// # Safety
/// `handle` is live, and `get` belongs to the next layer.
pub unsafe fn add_unrecorded(handle: vk::Device, get: GetDeviceProcAddr) {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    UNRECORDED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .push((key, get));
}

/// Forgets a device.
pub fn remove(device: &'static Device) {
    DEVICES
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|entry| !std::ptr::eq(entry.device, device));
}

/// The device to which a dispatchable handle belongs.
///
/// # Safety
/// `handle` is live.
pub unsafe fn of(handle: impl DeviceHandle) -> Option<&'static Device> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.raw()) };
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    devices
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| entry.device)
}

/// The next layer's vkGetDeviceProcAddr, and whether the device is recorded. `None`: the device is not known yet.
///
/// # Safety
/// `handle` is live.
pub unsafe fn get_device_proc_addr(handle: vk::Device) -> Option<(GetDeviceProcAddr, bool)> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = devices.iter().find(|entry| entry.key == key) {
        return Some((entry.get, true));
    }
    let unrecorded = UNRECORDED.read().unwrap_or_else(PoisonError::into_inner);
    let known = unrecorded.iter().rev().find(|(k, _)| *k == key);
    known.map(|(_, get)| (*get, false))
}

/// A dispatchable handle that belongs to a device.
pub trait DeviceHandle {
    /// The raw handle.
    fn raw(self) -> u64;
}

impl DeviceHandle for vk::Device {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

impl DeviceHandle for vk::Queue {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

impl DeviceHandle for vk::CommandBuffer {
    fn raw(self) -> u64 {
        self.as_raw()
    }
}

/// The device of a handle together with a function of the next layer. Both exist in every hook that the program can
/// reach: hooks are given out only for functions that the next layer has.
///
/// # Safety
/// `handle` is live.
#[inline]
pub unsafe fn with<F>(
    handle: impl DeviceHandle,
    function: impl FnOnce(&'static DeviceFunctions) -> Option<F>,
) -> Option<(&'static Device, F)> {
    // SAFETY: as the caller promises.
    let device = unsafe { of(handle) }?;
    Some((device, function(device.functions)?))
}

/// Lets the threads of all devices end at the exit of the process, with what has finished. Handlers run in the reverse
/// order of their registration: this one is registered when a driver has made a device, and so it runs while the
/// driver still works.
fn stop_at_exit() {
    extern "C" fn stop() {
        guard(|| {
            if PROCESS.load(Relaxed) != std::process::id() {
                // A forked child has none of our threads, and what is pending is its parent's.
                return;
            }
            if let Ok(devices) = DEVICES.try_read() {
                for entry in devices.iter() {
                    entry.device.stop_counting();
                    entry.device.harvester.stop_at_exit();
                }
            }
        });
    }
    let pid = std::process::id();
    if PROCESS.swap(pid, Relaxed) == 0 {
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(stop) };
    }
}

/// An instance is about to be destroyed: its driver must not be asked for anything any more, even if the program has
/// left devices behind.
pub fn stop_instance(instance: &'static Instance) {
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    for entry in devices
        .iter()
        .filter(|entry| std::ptr::eq(entry.device.instance, instance))
    {
        entry.device.stop_counting();
        entry.device.harvester.stop();
    }
}

/// Collects what has finished on all devices; true when nothing is pending any more.
pub fn flush_all() -> bool {
    // Held throughout: a device is taken from the list before it is destroyed.
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    let flushed = |entry: &Entry| {
        let harvester = entry.device.harvester;
        harvester.is_lost() || harvester.flush()
    };
    // Not `all`: each is to be flushed.
    devices.iter().map(flushed).fold(true, |all, one| all & one)
}
