//! What the layer adds to a device that the program makes: the extension that reads both clocks, and host query reset
//! for queues that only transfer.

use crate::api::arguments::slice;
use crate::api::features::{self, ChainWithHostQueryReset, HostQueryReset};
use crate::api::physical_device::PhysicalDevice;
use ash::vk;
use std::ffi::{CStr, c_char};

/// How the program's VkDeviceCreateInfo is changed.
pub struct DevicePlan {
    extensions: Vec<*const c_char>,
    /// The clocks can be read together.
    pub calibrated: bool,
    /// Queries can be reset from the host.
    pub host_query_reset: bool,
    adds_extension: bool,
    reset: AddReset,
}

/// How host query reset is added to the program's features.
enum AddReset {
    No,
    /// As a structure of its own before the chain.
    Before(vk::PhysicalDeviceHostQueryResetFeatures<'static>),
    /// In a copy of the program's structure.
    Inside(ChainWithHostQueryReset),
}

impl DevicePlan {
    /// # Safety
    /// `info` is the program's, during its call.
    pub unsafe fn new(physical: PhysicalDevice, info: &vk::DeviceCreateInfo<'_>) -> DevicePlan {
        const NAMES: [&CStr; 2] = [
            c"VK_KHR_calibrated_timestamps",
            c"VK_EXT_calibrated_timestamps",
        ];
        // SAFETY: the program's arrays are valid.
        let mut extensions: Vec<*const c_char> = unsafe {
            slice(
                info.pp_enabled_extension_names,
                info.enabled_extension_count,
            )
            .to_vec()
        };
        // SAFETY: each name is NUL-terminated and outlives the call.
        let names: Vec<&CStr> = unsafe { extensions.iter().map(|e| CStr::from_ptr(*e)).collect() };
        let present = NAMES.into_iter().find(|name| names.contains(name));
        let addition = match present {
            Some(_) => None,
            None => NAMES.into_iter().find(|name| physical.has_extension(name)),
        };
        extensions.extend(addition.map(CStr::as_ptr));

        // SAFETY: the chain is valid.
        let asked = unsafe { features::host_query_reset(info.p_next) };
        let wanted = physical.needs_host_query_reset();
        let (host_query_reset, reset) = match asked {
            HostQueryReset::Enabled => (true, AddReset::No),
            HostQueryReset::Absent if wanted => (
                true,
                AddReset::Before(
                    vk::PhysicalDeviceHostQueryResetFeatures::default().host_query_reset(true),
                ),
            ),
            HostQueryReset::Copied(chain) if wanted => (true, AddReset::Inside(chain)),
            _ => (false, AddReset::No),
        };
        DevicePlan {
            extensions,
            calibrated: present.is_some() || addition.is_some(),
            adds_extension: addition.is_some(),
            host_query_reset,
            reset,
        }
    }

    pub fn adds(&self) -> bool {
        self.adds_extension || !matches!(self.reset, AddReset::No)
    }

    /// The driver refused our additions: what it gave without them.
    pub fn drop_additions(&mut self) {
        self.calibrated &= !self.adds_extension;
        self.host_query_reset &= matches!(self.reset, AddReset::No);
    }

    /// The create info to pass on. It borrows from `self`.
    pub fn create_info<'a>(
        &'a mut self,
        info: &vk::DeviceCreateInfo<'a>,
    ) -> vk::DeviceCreateInfo<'a> {
        let mut changed = *info;
        if self.adds_extension {
            changed.enabled_extension_count = self.extensions.len() as u32;
            changed.pp_enabled_extension_names = self.extensions.as_ptr();
        }
        match &mut self.reset {
            AddReset::No => {}
            AddReset::Before(feature) => {
                feature.p_next = info.p_next.cast_mut();
                changed.p_next = (&raw const *feature).cast();
            }
            AddReset::Inside(chain) => changed.p_next = chain.link(),
        }
        changed
    }
}
