//! Says what must be enabled for a function of the driver.

use std::ffi::CStr;

/// The version or extension that a function needs.
#[derive(Clone, Copy)]
pub enum Since {
    Core(u32),
    DeviceExtension(&'static CStr),
    InstanceExtension(&'static CStr),
}

/// An extension that ash does not know.
pub const FRAGMENT_DENSITY_MAP_OFFSET: &CStr = c"VK_EXT_fragment_density_map_offset";
