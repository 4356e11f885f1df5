//! Holds the state of a device: the functions and features that it offers, the objects that live on it, and whether
//! it is lost.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use ash::vk::{self, Handle};

use crate::availability::Since;
use crate::config::config;
use crate::object::{self, Body, Object};
use crate::{features, misuse};

pub struct Device {
    pub api_version: u32,
    pub instance_extensions: Vec<&'static CStr>,
    pub extensions: Vec<&'static CStr>,
    pub enabled: features::Enabled,
    pub queues: Mutex<Vec<vk::Queue>>,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
    /// The objects that were created and not destroyed, to report leaks.
    pub live: Mutex<BTreeMap<u64, vk::ObjectType>>,
    pub executed: AtomicU64,
    pub lost: AtomicBool,
    /// Whether the program has the profiling lock.
    pub profiling: AtomicBool,
    pub closing: AtomicBool,
}

impl Body for Device {
    type Handle = vk::Device;
}

impl Device {
    pub fn create<T: Body>(&self, body: T) -> T::Handle {
        let handle = object::create(body);
        if !config().null {
            lock(&self.live).insert(handle.as_raw(), T::Handle::TYPE);
        }
        handle
    }

    pub fn destroy<T: Body>(&self, call: &str, handle: T::Handle) -> Option<&'static Object<T>> {
        let raw = handle.as_raw();
        let object = object::destroy::<T>(call, handle)?;
        if !config().null && lock(&self.live).remove(&raw).is_none() {
            misuse::report(
                call,
                format_args!("{:?} {raw:#x} belongs to another device", T::Handle::TYPE),
            );
        }
        Some(object)
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Acquire)
    }

    /// Returns whether one more submission executes; past the configured number it loses the device instead, see
    /// [`Self::lose`].
    pub fn execute_one(&self) -> bool {
        let before = self.executed.fetch_add(1, AcqRel);
        !self.is_lost() && config().lost_after.is_none_or(|limit| before < limit)
    }

    /// Loses the device. The caller is inside an update of `sync`.
    pub fn lose(&self) {
        self.lost.store(true, Release);
    }

    pub fn requires(&self, call: &str, feature: &str, enabled: bool) {
        if !enabled {
            misuse::report(
                call,
                format_args!("the device was created without the feature {feature}"),
            );
        }
    }

    pub fn offers(&self, since: Since) -> bool {
        match since {
            Since::Core(version) => version <= self.api_version,
            Since::DeviceExtension(name) => self.extensions.contains(&name),
            Since::InstanceExtension(name) => self.instance_extensions.contains(&name),
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an object of a device for a call that creates one.
pub unsafe fn create<T: Body>(
    call: &str,
    device: vk::Device,
    out: *mut T::Handle,
    body: impl FnOnce(&Device) -> T,
) -> vk::Result {
    let Some(device) = object::get::<Device>(call, device) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    *out = device.create(body(device));
    vk::Result::SUCCESS
}

/// Destroys an object of a device for a call that does so, and returns both.
pub fn destroy<T: Body>(
    call: &str,
    device: vk::Device,
    handle: T::Handle,
) -> Option<(&'static Object<Device>, &'static Object<T>)> {
    let device = object::get::<Device>(call, device)?;
    Some((device, device.destroy::<T>(call, handle)?))
}

/// Defines functions that do nothing but destroy an object.
macro_rules! destroy_functions {
    ($($name:ident, $destroy:ident($call:literal);)*) => {$(
        pub unsafe extern "system" fn $destroy(
            device: ash::vk::Device,
            handle: ash::vk::$name,
            _: *const ash::vk::AllocationCallbacks<'_>,
        ) {
            $crate::device::destroy::<$name>($call, device, handle);
        }
    )*};
}
pub(crate) use destroy_functions;

/// Defines types whose objects are nothing but a handle.
macro_rules! plain_objects {
    ($($name:ident, $create:ident($call_create:literal), $destroy:ident($call_destroy:literal), $info:ty;)*) => {$(
        pub struct $name;

        impl $crate::object::Body for $name {
            type Handle = ash::vk::$name;
        }

        pub unsafe extern "system" fn $create(
            device: ash::vk::Device,
            _: *const $info,
            _: *const ash::vk::AllocationCallbacks<'_>,
            out: *mut ash::vk::$name,
        ) -> ash::vk::Result {
            $crate::device::create($call_create, device, out, |_| $name)
        }

        $crate::device::destroy_functions! { $name, $destroy($call_destroy); }
    )*};
}
pub(crate) use plain_objects;
