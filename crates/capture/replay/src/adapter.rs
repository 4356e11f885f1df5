//! Lists Vulkan devices, selects the one to use, and reads its properties: features, limits, extensions and shapes of
//! matrices. First [`Instance::for_thread`], then [`Instance::adapter`]; the device is opened elsewhere (`gpu`).

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::rc::Rc;

use ash::{ext, khr, vk};

use crate::error::Error;
use crate::features::Features;
use crate::shader::Matrix;

/// A Vulkan instance with the loader's library.
pub struct Instance {
    pub raw: ash::Instance,
    pub entry: ash::Entry,
    /// Whether debug labels (`VK_EXT_debug_utils`) can be recorded.
    pub has_labels: bool,
}

/// A Vulkan device with its properties, not opened yet.
pub struct Adapter {
    pub instance: Rc<Instance>,
    pub physical: vk::PhysicalDevice,
    pub properties: Properties,
    pub extensions: BTreeSet<String>,
    /// What the device can do; nothing is enabled yet.
    pub features: Features,
    pub memory: vk::PhysicalDeviceMemoryProperties,
    /// The queue families, by index.
    pub families: Vec<vk::QueueFamilyProperties>,
    /// Whether the device can read its clock and the host's monotonic clock at once.
    pub calibrates: bool,
}

/// The properties of a device that captures are checked against.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    pub name: String,
    pub driver: String,
    /// The device's UUID as hexadecimal.
    pub uuid: String,
    /// The UUID of the driver's compiled pipelines as hexadecimal; drivers that compile alike have the same.
    pub pipeline_cache_uuid: String,
    pub limits: vk::PhysicalDeviceLimits,
    pub subgroup_size: u32,
    pub subgroup_operations: vk::SubgroupFeatureFlags,
    /// Whether compute shaders may use `subgroup_operations`.
    pub subgroups_in_compute: bool,
    pub min_subgroup_size: u32,
    pub max_subgroup_size: u32,
    /// Whether compute shaders may require a subgroup size.
    pub required_size_in_compute: bool,
    /// The most subgroups of a workgroup.
    pub max_subgroups: u32,
    pub max_allocation_bytes: u64,
    pub max_buffer_bytes: u64,
    /// Pairs of capability and width in bits of the float controls that the device has.
    pub float_controls: BTreeSet<(u32, u32)>,
    /// Shapes of cooperative matrices.
    pub matrices: Vec<Shape>,
}

/// A multiplication of cooperative matrices, `m` × `k` by `k` × `n`. Components are `VkComponentTypeKHR`, the scope
/// is `VkScopeKHR`.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    m: u32,
    n: u32,
    k: u32,
    a: i32,
    b: i32,
    c: i32,
    result: i32,
    scope: i32,
}

/// The user's choice of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A number, from 0, in the order in which the driver lists devices.
    Number(usize),
    /// A part of a name.
    Name(String),
}

impl DeviceChoice {
    /// Returns the choice that a user typed: a number, or a part of a name.
    pub fn from_text(text: &str) -> DeviceChoice {
        match text.parse() {
            Ok(number) => DeviceChoice::Number(number),
            Err(_) => DeviceChoice::Name(text.to_owned()),
        }
    }
}

thread_local! {
    /// The instance that replays of one thread share. The loader unloads drivers with the last instance, and NVIDIA's
    /// (580.159) was not found again after several times.
    static INSTANCE: OnceCell<Rc<Instance>> = const { OnceCell::new() };
}

impl Instance {
    /// Returns the instance of this thread, and makes it on the first call.
    pub fn for_thread() -> Result<Rc<Instance>, Error> {
        INSTANCE.with(|kept| {
            if let Some(instance) = kept.get() {
                return Ok(Rc::clone(instance));
            }
            let instance = Instance::new()?;
            Ok(Rc::clone(kept.get_or_init(|| instance)))
        })
    }

    /// Loads Vulkan and makes an instance.
    fn new() -> Result<Rc<Instance>, Error> {
        // SAFETY: the loader is the system's, which the user's programs load as well.
        let entry =
            unsafe { ash::Entry::load() }.map_err(|error| Error::NoLoader(error.to_string()))?;
        // SAFETY: no layer is named.
        let extensions = unsafe { entry.enumerate_instance_extension_properties(None) }
            .map_err(Error::from_call("list instance extensions"))?;
        let has = |name: &CStr| {
            extensions
                .iter()
                .any(|e| e.extension_name_as_c_str() == Ok(name))
        };
        let has_labels = has(ext::debug_utils::NAME);
        let portability = has(khr::portability_enumeration::NAME);
        let mut names: Vec<*const c_char> = Vec::new();
        if has_labels {
            names.push(ext::debug_utils::NAME.as_ptr());
        }
        let mut flags = vk::InstanceCreateFlags::empty();
        if portability {
            names.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let application = vk::ApplicationInfo::default()
            .application_name(c"gapscope replay")
            .api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&names);
        // SAFETY: all that the structure points to is alive.
        let raw = unsafe { entry.create_instance(&info, None) }
            .map_err(|result| Error::NoDevice(format!(": no driver could be used ({result})")))?;
        Ok(Rc::new(Instance {
            raw,
            entry,
            has_labels,
        }))
    }

    /// Returns the device of a choice (a part of a name is compared without case); without a choice the device with
    /// the captured device's name, else the first. Fails if the device has not Vulkan 1.3.
    pub fn adapter(
        self: &Rc<Instance>,
        choice: Option<&DeviceChoice>,
        captured: &str,
    ) -> Result<Adapter, Error> {
        // SAFETY: the instance lives.
        let all = unsafe { self.raw.enumerate_physical_devices() }
            .map_err(Error::from_call("list devices"))?;
        let named: Vec<_> = all
            .iter()
            .map(|physical| (*physical, self.name(*physical)))
            .collect();
        let found = match choice {
            Some(DeviceChoice::Number(number)) => named.get(*number),
            Some(DeviceChoice::Name(name)) => {
                let part = name.to_lowercase();
                named
                    .iter()
                    .find(|(_, name)| name.to_lowercase().contains(&part))
            }
            None => {
                let same = named.iter().find(|(_, name)| name == captured);
                same.or(named.first())
            }
        };
        let Some((physical, name)) = found else {
            let names: Vec<_> = named
                .iter()
                .enumerate()
                .map(|(n, (_, name))| format!("{n} ({name})"))
                .collect();
            return Err(match choice {
                Some(choice) if !names.is_empty() => Error::NoSuchDevice {
                    asked: match choice {
                        DeviceChoice::Number(number) => number.to_string(),
                        DeviceChoice::Name(name) => name.clone(),
                    },
                    there: format!(
                        "{} {}",
                        if names.len() == 1 { "is" } else { "are" },
                        names.join(", ")
                    ),
                },
                _ => Error::NoDevice(String::new()),
            });
        };
        // SAFETY: the device is of this instance.
        let version = unsafe { self.raw.get_physical_device_properties(*physical) }.api_version;
        if version < vk::API_VERSION_1_3 {
            let version = version_text(version);
            return Err(Error::NoDevice(format!(": {name} has Vulkan {version}")));
        }
        Adapter::new(self, *physical)
    }

    /// Returns the name of a device.
    fn name(&self, physical: vk::PhysicalDevice) -> String {
        // SAFETY: the device is of this instance.
        let properties = unsafe { self.raw.get_physical_device_properties(physical) };
        text(&properties.device_name)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: whatever was made from the instance holds a reference to it, so that nothing is left.
        unsafe { self.raw.destroy_instance(None) };
    }
}

impl Adapter {
    /// Reads all that is known of a device before it is opened.
    fn new(instance: &Rc<Instance>, physical: vk::PhysicalDevice) -> Result<Adapter, Error> {
        let raw = &instance.raw;
        let extensions = extensions_of(raw, physical)?;
        let mut features = Features::none(&extensions);
        // SAFETY: the device is of this instance; the chain is of structures that the device knows, alive and with room for their members.
        unsafe {
            (raw.fp_v1_1().get_physical_device_features2)(physical, features.chain().cast());
        }
        let mut properties = properties(raw, physical);
        if features.has("cooperativeMatrix") {
            let functions = khr::cooperative_matrix::Instance::new(&instance.entry, raw);
            // SAFETY: the device has the extension.
            let shapes =
                unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) };
            properties.matrices = shapes
                .unwrap_or_default()
                .iter()
                .map(Shape::from_properties)
                .collect();
        }
        Ok(Adapter {
            calibrates: calibrates(instance, physical, &extensions),
            instance: Rc::clone(instance),
            physical,
            properties,
            extensions,
            features,
            // SAFETY: the device is of this instance.
            memory: unsafe { raw.get_physical_device_memory_properties(physical) },
            // SAFETY: as above.
            families: unsafe { raw.get_physical_device_queue_family_properties(physical) },
        })
    }

    /// Returns the index of the queue family to run on: one that computes, if possible with the flags of the captured
    /// queue's family.
    pub fn family(&self, captured: Option<u32>) -> Result<u32, Error> {
        let computes = |family: &vk::QueueFamilyProperties| {
            family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        };
        let same = captured.and_then(|flags| {
            let mut families = self.families.iter();
            families.position(|family| computes(family) && family.queue_flags.as_raw() == flags)
        });
        same.or_else(|| self.families.iter().position(computes))
            .map(|index| index as u32)
            .ok_or_else(|| {
                Error::NoDevice(format!(
                    ": {} has no queue that computes",
                    self.properties.name
                ))
            })
    }
}

/// Returns the names of the extensions of a device, which must be of this instance.
pub fn extensions_of(
    raw: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<BTreeSet<String>, Error> {
    // SAFETY: the device is of this instance, as the caller promises.
    let extensions = unsafe { raw.enumerate_device_extension_properties(physical) }
        .map_err(Error::from_call("list device extensions"))?;
    let names = extensions
        .iter()
        .filter_map(|extension| extension.extension_name_as_c_str().ok());
    Ok(names
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// Returns whether a device, which must be of this instance, can read its clock and the host's monotonic clock at
/// once.
pub fn calibrates(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    extensions: &BTreeSet<String>,
) -> bool {
    extensions.contains("VK_EXT_calibrated_timestamps") && {
        let functions = ext::calibrated_timestamps::Instance::new(&instance.entry, &instance.raw);
        // SAFETY: the device has the extension.
        let domains = unsafe { functions.get_physical_device_calibrateable_time_domains(physical) };
        let domains = domains.unwrap_or_default();
        [
            vk::TimeDomainEXT::DEVICE,
            vk::TimeDomainEXT::CLOCK_MONOTONIC,
        ]
        .iter()
        .all(|domain| domains.contains(domain))
    }
}

impl Properties {
    /// Returns whether the device multiplies matrices of this type.
    pub fn serves(&self, matrix: &Matrix) -> bool {
        self.matrices.iter().any(|shape| {
            let (rows, columns, components) = match matrix.role {
                0 => (shape.m, shape.k, [shape.a; 2]),
                1 => (shape.k, shape.n, [shape.b; 2]),
                _ => (shape.m, shape.n, [shape.c, shape.result]),
            };
            u32::try_from(shape.scope) == Ok(matrix.scope)
                && (rows, columns) == (matrix.rows, matrix.columns)
                && components.contains(&matrix.component)
        })
    }
}

impl Shape {
    /// Returns `[m, n, k]` if a subgroup multiplies inputs of the type `input` and adds them up in the type `sum`.
    pub fn for_types(&self, input: i32, sum: i32) -> Option<[u32; 3]> {
        let fits = [self.a, self.b, self.c, self.result] == [input, input, sum, sum];
        let by_subgroup = self.scope == vk::ScopeKHR::SUBGROUP.as_raw();
        (fits && by_subgroup).then_some([self.m, self.n, self.k])
    }

    fn from_properties(of: &vk::CooperativeMatrixPropertiesKHR<'_>) -> Shape {
        Shape {
            m: of.m_size,
            n: of.n_size,
            k: of.k_size,
            a: of.a_type.as_raw(),
            b: of.b_type.as_raw(),
            c: of.c_type.as_raw(),
            result: of.result_type.as_raw(),
            scope: of.scope.as_raw(),
        }
    }
}

/// Reads the properties of a device, without the shapes of matrices.
fn properties(raw: &ash::Instance, physical: vk::PhysicalDevice) -> Properties {
    let mut of_1_1 = vk::PhysicalDeviceVulkan11Properties::default();
    let mut of_1_2 = vk::PhysicalDeviceVulkan12Properties::default();
    let mut of_1_3 = vk::PhysicalDeviceVulkan13Properties::default();
    let mut all = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut of_1_1)
        .push_next(&mut of_1_2)
        .push_next(&mut of_1_3);
    // SAFETY: the device is of this instance and has Vulkan 1.3, whose structures these are.
    unsafe { raw.get_physical_device_properties2(physical, &mut all) };
    let all = all.properties;
    let compute = vk::ShaderStageFlags::COMPUTE;
    // By SPIR-V capability of the float control, and width.
    let controls = [
        (4464, 16, of_1_2.shader_denorm_preserve_float16),
        (4464, 32, of_1_2.shader_denorm_preserve_float32),
        (4464, 64, of_1_2.shader_denorm_preserve_float64),
        (4465, 16, of_1_2.shader_denorm_flush_to_zero_float16),
        (4465, 32, of_1_2.shader_denorm_flush_to_zero_float32),
        (4465, 64, of_1_2.shader_denorm_flush_to_zero_float64),
        (4466, 16, of_1_2.shader_signed_zero_inf_nan_preserve_float16),
        (4466, 32, of_1_2.shader_signed_zero_inf_nan_preserve_float32),
        (4466, 64, of_1_2.shader_signed_zero_inf_nan_preserve_float64),
        (4467, 16, of_1_2.shader_rounding_mode_rte_float16),
        (4467, 32, of_1_2.shader_rounding_mode_rte_float32),
        (4467, 64, of_1_2.shader_rounding_mode_rte_float64),
        (4468, 16, of_1_2.shader_rounding_mode_rtz_float16),
        (4468, 32, of_1_2.shader_rounding_mode_rtz_float32),
        (4468, 64, of_1_2.shader_rounding_mode_rtz_float64),
    ];
    let served = controls.iter().filter(|(_, _, has)| *has == vk::TRUE);
    Properties {
        name: text(&all.device_name),
        driver: driver_text(&of_1_2.driver_name, &of_1_2.driver_info),
        uuid: hexadecimal(&of_1_1.device_uuid),
        pipeline_cache_uuid: hexadecimal(&all.pipeline_cache_uuid),
        limits: all.limits,
        subgroup_size: of_1_1.subgroup_size,
        subgroup_operations: of_1_1.subgroup_supported_operations,
        subgroups_in_compute: of_1_1.subgroup_supported_stages.contains(compute),
        min_subgroup_size: of_1_3.min_subgroup_size,
        max_subgroup_size: of_1_3.max_subgroup_size,
        required_size_in_compute: of_1_3.required_subgroup_size_stages.contains(compute),
        max_subgroups: of_1_3.max_compute_workgroup_subgroups,
        max_allocation_bytes: of_1_1.max_memory_allocation_size,
        max_buffer_bytes: of_1_3.max_buffer_size,
        float_controls: served.map(|(number, width, _)| (*number, *width)).collect(),
        matrices: Vec::new(),
    }
}

/// Returns the name of a driver with its version.
pub fn driver_text(name: &[c_char], info: &[c_char]) -> String {
    [text(name), text(info)].join(" ").trim().to_owned()
}

/// Returns a version of Vulkan, such as `1.3`.
pub fn version_text(version: u32) -> String {
    let minor = vk::api_version_minor(version);
    format!("{}.{minor}", vk::api_version_major(version))
}

/// Returns the text before the first zero byte.
pub fn text(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|c| *c as u8)
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
