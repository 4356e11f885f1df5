//! Lists Vulkan devices with their drivers and clocks, without opening any.

use ash::{khr, vk};
use serde::{Deserialize, Serialize};

use crate::adapter::{Instance, calibrates, driver_text, extensions_of, text, version_text};
use crate::error::Error;

/// A Vulkan device, as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Name of the device.
    pub name: String,
    /// The driver's name with its version; `None` before Vulkan 1.2.
    pub driver: Option<String>,
    /// The version of Vulkan, such as `1.3`.
    pub vulkan: String,
    /// Number of queue families that compute or draw.
    pub queue_families: u32,
    /// Number of those families that write timestamps.
    pub timed_queue_families: u32,
    /// Whether the device can read its clock and the host's at once.
    pub is_calibrated: bool,
    /// Whether the device offers `VK_KHR_performance_query`. Its counters are known only once a program has opened
    /// the device.
    pub has_performance_queries: bool,
}

/// Lists the devices in the loader's order. No device is opened, so that no context is made.
///
/// # Errors
/// There is no loader, or no driver that the loader can use.
pub fn devices() -> Result<Vec<Device>, Error> {
    let instance = Instance::for_thread()?;
    let raw = &instance.raw;
    // SAFETY: the instance lives, and the devices are of it, here and below.
    let all =
        unsafe { raw.enumerate_physical_devices() }.map_err(Error::from_call("list devices"))?;
    all.into_iter()
        .map(|physical| {
            let extensions = extensions_of(raw, physical)?;
            // SAFETY: as above.
            let properties = unsafe { raw.get_physical_device_properties(physical) };
            let version = properties.api_version;
            // SAFETY: as above.
            let families = unsafe { raw.get_physical_device_queue_family_properties(physical) };
            let works = vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS;
            let working = || families.iter().filter(|f| f.queue_flags.intersects(works));
            Ok(Device {
                name: text(&properties.device_name),
                driver: (version >= vk::API_VERSION_1_2).then(|| driver(raw, physical)),
                vulkan: version_text(version),
                queue_families: working().count() as u32,
                timed_queue_families: working().filter(|f| f.timestamp_valid_bits > 0).count()
                    as u32,
                is_calibrated: extensions
                    .iter()
                    .any(|name| khr::calibrated_timestamps::NAME.to_str() == Ok(name.as_str()))
                    || calibrates(&instance, physical, &extensions),
                has_performance_queries: (extensions.iter())
                    .any(|name| khr::performance_query::NAME.to_str() == Ok(name.as_str())),
            })
        })
        .collect()
}

/// Returns the name and version of a device's driver; the device must have Vulkan 1.2.
fn driver(raw: &ash::Instance, physical: vk::PhysicalDevice) -> String {
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
    // SAFETY: the device is of this instance and has Vulkan 1.2, of which the structure is.
    unsafe { raw.get_physical_device_properties2(physical, &mut all) };
    driver_text(&driver.driver_name, &driver.driver_info)
}
