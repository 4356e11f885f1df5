//! Creates the Vulkan instance, which the devices on it share.

use std::ffi::CStr;

use anyhow::{Context, Result};
use ash::{ext, vk};

use crate::args::{Args, Moment};
use crate::conduct;

/// The instance, and whether it has the extension for labels and names.
pub struct Instance {
    pub raw: ash::Instance,
    pub has_debug_utils: bool,
    _entry: ash::Entry,
}

impl Instance {
    pub fn new(args: &Args) -> Result<Self> {
        let entry = unsafe { ash::Entry::load() }
            .context("the Vulkan loader could not be loaded: install libvulkan1")?;
        let extensions = unsafe { entry.enumerate_instance_extension_properties(None)? };
        let has_debug_utils = has(&extensions, ext::debug_utils::NAME);
        let application = vk::ApplicationInfo::default()
            .application_name(c"planted")
            .api_version(vk::make_api_version(0, 1, args.api_minor, 0));
        let names = [ext::debug_utils::NAME.as_ptr()];
        let info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_extension_names(if has_debug_utils { &names } else { &[] });
        let raw = unsafe { entry.create_instance(&info, None) }
            .context("no Vulkan driver could be used")?;
        conduct::at(Moment::Instance, args)?;
        Ok(Self {
            raw,
            has_debug_utils,
            _entry: entry,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        unsafe { self.raw.destroy_instance(None) };
    }
}

/// Returns whether an extension is among those that the driver offers.
pub fn has(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions
        .iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(name))
}
