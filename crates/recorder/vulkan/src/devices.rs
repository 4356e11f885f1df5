//! Keeps the devices of the process; ends their recording at the exit of the process or of their instance
//! (`VkInstance`), and flushes them when the program asks.

use crate::api::instance::Instance;
use crate::device::Device;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::devices::Devices;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The devices that have been made through the layer, by the key that their handles share.
pub static DEVICES: Devices<Device> = Devices::new();

/// The id of the process that made a device last; 0 before the first.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Sees to it that at the exit of the process the harvesters (threads that collect results) of all devices end,
/// having collected what has finished. Exit handlers run in the reverse order of their registration: this one is
/// registered when a driver has made a device, so it runs while the driver still works.
pub fn stop_at_exit() {
    extern "C" fn stop() {
        guard(|| {
            if PROCESS.load(Relaxed) != std::process::id() {
                // A forked child has none of the threads, and what is pending is its parent's.
                return;
            }
            DEVICES.try_for_each(|device| {
                device.stop_counting();
                device.harvester.stop_at_exit();
            });
        });
    }
    let pid = std::process::id();
    if PROCESS.swap(pid, Relaxed) == 0 {
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(stop) };
    }
}

/// Stops the devices of an instance that is about to be destroyed: its driver must not be asked for anything any
/// more, even if the program has left devices behind.
pub fn stop_instance(instance: &'static Instance) {
    DEVICES.for_each(|device| {
        if std::ptr::eq(device.instance, instance) {
            device.stop_counting();
            device.harvester.stop();
        }
    });
}

/// Collects what has finished on all devices; returns true when nothing is pending any more, except on lost devices.
pub fn flush_all() -> bool {
    let mut is_done = true;
    DEVICES.for_each(|device| {
        let harvester = device.harvester;
        is_done &= harvester.is_lost() || harvester.flush();
    });
    is_done
}
