//! Finds the layer's state of a device by a dispatchable handle (of a device, queue or command buffer: a pointer to
//! memory whose first word is the same for all of one device, here called its key).

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use ash::vk;
use ash::vk::Handle;

use crate::loader::{self, GetDeviceProcAddr};

/// The devices that have been made through a layer whose type for devices is `D`.
pub struct Devices<D: 'static>(RwLock<Vec<Entry<D>>>);

/// A device of the process, by the key that all its dispatchable handles share.
struct Entry<D: 'static> {
    key: usize,
    /// `None` if calls on the device are passed on untouched.
    device: Option<&'static D>,
    /// The next layer's vkGetDeviceProcAddr.
    get: GetDeviceProcAddr,
}

impl<D> Devices<D> {
    /// Creates an empty list, for a static variable.
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Devices<D> {
        Devices(RwLock::new(Vec::new()))
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Entry<D>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a device.
    ///
    /// # Safety
    /// `handle` is live, and `get` belongs to the next layer.
    pub unsafe fn add(
        &self,
        handle: vk::Device,
        device: Option<&'static D>,
        get: GetDeviceProcAddr,
    ) {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle.as_raw()) };
        let mut devices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A device that was not destroyed through the layer has left its key behind.
        devices.retain(|entry| entry.key != key);
        devices.push(Entry { key, device, get });
    }

    /// Forgets a device.
    pub fn remove(&self, device: &'static D) {
        let mut devices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|entry| {
            !entry
                .device
                .is_some_and(|known| std::ptr::eq(known, device))
        });
    }

    /// Returns the device to which a dispatchable handle belongs.
    ///
    /// # Safety
    /// `handle` is live.
    pub unsafe fn get(&self, handle: impl DeviceHandle) -> Option<&'static D> {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle.raw()) };
        let devices = self.read();
        let entry = devices.iter().find(|entry| entry.key == key)?;
        entry.device
    }

    /// Returns the next layer's vkGetDeviceProcAddr, and whether calls on the device are hooked; `None` if the device
    /// is not known yet.
    ///
    /// # Safety
    /// `handle` is live.
    pub unsafe fn get_device_proc_addr(
        &self,
        handle: vk::Device,
    ) -> Option<(GetDeviceProcAddr, bool)> {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle.as_raw()) };
        let devices = self.read();
        let entry = devices.iter().find(|entry| entry.key == key)?;
        Some((entry.get, entry.device.is_some()))
    }

    /// Visits all devices. None of them is destroyed meanwhile: a device is removed before it is destroyed.
    pub fn for_each(&self, visit: impl FnMut(&'static D)) {
        self.read()
            .iter()
            .filter_map(|entry| entry.device)
            .for_each(visit);
    }

    /// Visits all devices as [`Devices::for_each`] does, unless another thread changes the list.
    pub fn try_for_each(&self, visit: impl FnMut(&'static D)) {
        if let Ok(devices) = self.0.try_read() {
            devices
                .iter()
                .filter_map(|entry| entry.device)
                .for_each(visit);
        }
    }
}

/// A dispatchable handle that belongs to a device.
pub trait DeviceHandle {
    /// The raw handle.
    fn raw(self) -> u64;
}

macro_rules! device_handles {
    ($($handle:ty),+) => {
        $(impl DeviceHandle for $handle {
            fn raw(self) -> u64 {
                self.as_raw()
            }
        })+
    };
}
device_handles!(vk::Device, vk::Queue, vk::CommandBuffer);
