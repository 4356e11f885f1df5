//! Checks a pipeline (a kernel with its options) against the device: the capabilities and extensions of its shader,
//! its memory, its subgroups and its matrices. What does not fit becomes a reason of the [`DeviceCheck`]; what fits
//! becomes a feature or an extension to enable.

use gapscope_capture::model::{Pipeline, PipelineId};
use gapscope_spirv::Specialisation;

use super::DeviceCheck;
use crate::error::Error;
use crate::registry::{CAPABILITIES, EXTENSIONS, Need};
use crate::shader::Shader;

/// `VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT`
pub const VARYING_SUBGROUP_SIZE: u32 = 1;
/// `VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT`
pub const FULL_SUBGROUPS: u32 = 2;
/// `StorageInputOutput16`
const INPUT_OUTPUT_16: u32 = 4436;
/// The execution mode `SubgroupUniformControlFlowKHR`.
const UNIFORM_CONTROL_FLOW: u32 = 4421;
/// The execution mode `MaximallyReconvergesKHR`.
const MAXIMALLY_RECONVERGES: u32 = 6023;

impl DeviceCheck<'_> {
    /// Checks one pipeline, and keeps its shader for the replay. What the device lacks is added to the check's
    /// reasons.
    ///
    /// # Errors
    /// The content of its module is missing or damaged.
    pub(super) fn kernel(&mut self, id: PipelineId) -> Result<(), Error> {
        let capture = self.capture;
        let pipeline = &capture.pipelines[&id];
        self.checked_kernel = Some(pipeline.name.clone());
        let code = capture.modules[&pipeline.module].code;
        let code = capture.chunk(code).map_err(Error::Content)?;
        let specialisation: Specialisation = (pipeline.constants.iter())
            .map(|constant| (constant.id, constant.value.clone()))
            .collect();
        let mut shader = match Shader::read(&code, &pipeline.entry, &specialisation) {
            Ok(shader) => shader,
            Err(reason) => {
                self.refuse(format!("its SPIR-V is not right: {reason}"));
                return Ok(());
            }
        };
        if !self.adapter.features.has("storageInputOutput16") {
            // A compute shader has no such inputs and outputs, but compilers declare the capability anyway.
            shader.undeclare(INPUT_OUTPUT_16);
        }
        self.capabilities(&shader);
        self.extensions(&shader);
        self.limits(&shader);
        self.subgroups(pipeline, &shader);
        self.layout(pipeline, &shader);
        for constant in &pipeline.constants {
            let (id, bytes) = (constant.id, constant.value.len() as u64);
            if let Some(needs) = shader
                .constant_bytes
                .get(&id)
                .filter(|needs| **needs != bytes)
            {
                self.refuse(format!(
                    "its constant {id} has {bytes} bytes, and not {needs}"
                ));
            }
        }
        if shader.follows_addresses {
            self.refuse(
                "it reads or writes through device addresses, which are others in a replay",
            );
        }
        if pipeline.robustness.is_some() {
            self.need_feature("pipelineRobustness");
        }
        self.needs.shaders.insert(id, shader);
        Ok(())
    }

    /// Checks the capabilities: of the ways in which a device may serve one, all that this device has are enabled.
    fn capabilities(&mut self, shader: &Shader) {
        for number in &shader.capabilities {
            let known = CAPABILITIES.iter().find(|(known, _, _)| known == number);
            let Some((_, name, needs)) = known else {
                self.refuse(format!(
                    "its capability {number} is not one that this gapscope knows"
                ));
                continue;
            };
            let served: Vec<Need> = needs
                .iter()
                .copied()
                .filter(|need| self.has(*need))
                .collect();
            if served.is_empty() {
                let needs: Vec<_> = needs.iter().map(|need| describe(*need)).collect();
                let lacks = needs.join(" or ");
                self.refuse(format!("it needs {name}, and the device lacks {lacks}"));
            }
            for need in served {
                match need {
                    Need::Feature(name) => self.enable(name),
                    Need::Extension(name) => {
                        self.needs.extensions.insert(name.to_owned());
                    }
                    Need::Core | Need::Subgroup(_) | Need::FloatControl => {}
                }
            }
        }
        let controls = &self.adapter.properties.float_controls;
        let missing: Vec<_> = shader
            .float_controls
            .difference(controls)
            .copied()
            .collect();
        for (number, width) in missing {
            let name = CAPABILITIES.iter().find(|(known, _, _)| *known == number);
            let name = name.map_or("a float control", |(_, name, _)| name);
            self.refuse(format!(
                "it needs {name} for {width} bits, which the device lacks"
            ));
        }
    }

    /// Returns whether the device has what a capability needs; float controls are compared by themselves.
    fn has(&self, need: Need) -> bool {
        let properties = &self.adapter.properties;
        match need {
            Need::Core | Need::FloatControl => true,
            Need::Feature(name) => self.adapter.features.has(name),
            Need::Extension(name) => self.adapter.extensions.contains(name),
            Need::Subgroup(bit) => {
                properties.subgroups_in_compute
                    && properties.subgroup_operations.as_raw() & bit != 0
            }
        }
    }

    /// Checks the extensions, and what needs a feature although no capability says so; then the matrices.
    fn extensions(&mut self, shader: &Shader) {
        for name in &shader.extensions {
            match EXTENSIONS.iter().find(|(known, _)| known == name) {
                Some((_, None)) => {}
                Some((_, Some(extension))) if self.adapter.extensions.contains(*extension) => {
                    self.needs.extensions.insert((*extension).to_owned());
                }
                Some((_, Some(extension))) => {
                    self.refuse(format!("it uses {name}, and the device lacks {extension}"));
                }
                None => {
                    self.refuse(format!(
                        "its extension {name} is not one that this gapscope knows"
                    ));
                }
            }
        }
        for (mode, feature) in [
            (UNIFORM_CONTROL_FLOW, "shaderSubgroupUniformControlFlow"),
            (MAXIMALLY_RECONVERGES, "shaderMaximalReconvergence"),
        ] {
            if shader.modes.contains(&mode) {
                self.need_feature(feature);
            }
        }
        if shader.has_size_ids {
            self.need_feature("maintenance4");
        }
        if shader.zeroes_shared_memory {
            self.need_feature("shaderZeroInitializeWorkgroupMemory");
        }
        if shader
            .extensions
            .contains("SPV_KHR_relaxed_extended_instruction")
        {
            self.need_feature("shaderRelaxedExtendedInstruction");
        }
        for matrix in &shader.matrices {
            let flexible = [
                "cooperativeMatrixFlexibleDimensions",
                "cooperativeMatrixWorkgroupScope",
            ];
            let on = flexible.map(|name| self.adapter.features.has(name));
            let captured = &self.capture.header.device.features;
            let asked = flexible.map(|name| captured.iter().any(|feature| feature == name));
            for (name, _) in flexible
                .iter()
                .zip(on.iter().zip(asked))
                .filter(|(_, (on, asked))| **on && *asked)
            {
                self.enable(name);
            }
            // With flexible dimensions, multiples of the device's shapes are valid too, which is not checked here.
            let is_flexible = on[0] && asked[0];
            if !self.adapter.properties.serves(matrix) && !is_flexible {
                let crate::shader::Matrix { rows, columns, .. } = matrix;
                self.refuse(format!(
                    "the device has no cooperative matrix of {rows} by {columns} of its type"
                ));
            }
        }
    }

    /// Checks the size of a workgroup and its shared memory.
    fn limits(&mut self, shader: &Shader) {
        let limits = &self.adapter.properties.limits;
        if let Some(size) = shader.local_size {
            let threads = size.iter().map(|n| u64::from(*n)).product::<u64>();
            let most = limits.max_compute_work_group_invocations;
            let of_axes = limits.max_compute_work_group_size;
            let [x, y, z] = size;
            if threads == 0 {
                self.refuse(format!("its workgroups have no threads ({x} × {y} × {z})"));
            } else if threads > u64::from(most)
                || size.iter().zip(of_axes).any(|(n, most)| *n > most)
            {
                let [a, b, c] = of_axes;
                self.refuse(format!(
                    "its workgroups have {x} × {y} × {z} threads, and the device allows {most} ({a} × {b} × {c})"
                ));
            }
        }
        let most = limits.max_compute_shared_memory_size;
        if let Some(bytes) = shader.shared_bytes.filter(|bytes| *bytes > u64::from(most)) {
            self.refuse(format!(
                "its workgroups share {bytes} bytes of memory, and the device allows {most}"
            ));
        }
    }

    /// Checks a required subgroup size; where none is required, another size than the captured device's makes a note.
    fn subgroups(&mut self, pipeline: &Pipeline, shader: &Shader) {
        let properties = &self.adapter.properties;
        let (least, most) = (properties.min_subgroup_size, properties.max_subgroup_size);
        if let Some(size) = pipeline.required_subgroup_size {
            let fits = size.is_power_of_two() && (least..=most).contains(&size);
            let threads = shader
                .local_size
                .map(|size| size.iter().map(|n| u64::from(*n)).product::<u64>());
            let most_threads = u64::from(size) * u64::from(properties.max_subgroups);
            if !fits || !properties.required_size_in_compute {
                self.refuse(format!(
                    "it needs subgroups of {size} threads, and the device has {least} to {most}"
                ));
            } else if threads.is_some_and(|threads| threads > most_threads) {
                self.refuse(format!(
                    "its workgroups have more than {most_threads} threads in subgroups of {size}"
                ));
            }
            self.need_feature("subgroupSizeControl");
        }
        let here = self.adapter.properties.subgroup_size;
        let there = self.capture.header.device.subgroup_size;
        if pipeline.required_subgroup_size.is_none() && shader.knows_subgroups && here != there {
            self.needs.notes.push(format!(
                "Kernel {} uses subgroups, which had {there} threads and have {here} here: its results may differ.",
                pipeline.name
            ));
        }
        if pipeline.stage_flags & VARYING_SUBGROUP_SIZE != 0 {
            self.need_feature("subgroupSizeControl");
        }
        if pipeline.stage_flags & FULL_SUBGROUPS != 0 {
            self.need_feature("computeFullSubgroups");
        }
    }

    /// Checks the pipeline's layout against the device's limits, and the shader's descriptors against the layout.
    fn layout(&mut self, pipeline: &Pipeline, shader: &Shader) {
        let capture = self.capture;
        let layout = &capture.pipeline_layouts[&pipeline.layout];
        let limits = self.adapter.properties.limits;
        let bindings = || {
            let sets = layout.sets.iter().flatten();
            sets.flat_map(|set| &capture.set_layouts[set].bindings)
        };
        let count = |types: [u32; 2]| {
            let for_types = bindings().filter(|binding| types.contains(&binding.descriptor_type));
            for_types
                .map(|binding| u64::from(binding.count))
                .sum::<u64>()
        };
        let sets = layout.sets.len() as u64;
        let bytes = u64::from(layout.push_constant_bytes());
        let storage = limits.max_per_stage_descriptor_storage_buffers;
        let uniform = limits.max_per_stage_descriptor_uniform_buffers;
        for (what, count, unit, most) in [
            (
                "it",
                sets,
                "descriptor sets",
                limits.max_bound_descriptor_sets,
            ),
            (
                "it",
                bytes,
                "bytes of push constants",
                limits.max_push_constants_size,
            ),
            ("its layout", count(STORAGE), "storage buffers", storage),
            ("its layout", count(UNIFORM), "uniform buffers", uniform),
        ] {
            if count > u64::from(most) {
                self.refuse(format!(
                    "{what} has {count} {unit}, and the device allows {most}"
                ));
            }
        }
        for slot in &shader.slots {
            let (set, binding) = (slot.set, slot.binding);
            match capture.descriptors(layout, set, binding) {
                None => self.refuse(format!("its layout lacks set {set}, binding {binding}")),
                Some((kind, _)) if !slot.is_buffer || !is_buffer(kind) => self.refuse(format!(
                    "set {set}, binding {binding} is no buffer, and a capture has only buffers"
                )),
                Some((_, most)) if slot.count.is_some_and(|count| count > most) => self.refuse(
                    format!("set {set}, binding {binding} has more elements than its layout"),
                ),
                Some(_) => {}
            }
        }
    }
}

/// `VkDescriptorType` of storage buffers, without and with a dynamic offset.
pub const STORAGE: [u32; 2] = [7, 9];
/// `VkDescriptorType` of uniform buffers, without and with a dynamic offset.
pub const UNIFORM: [u32; 2] = [6, 8];

/// Returns whether a descriptor type is that of uniform or storage buffers.
pub fn is_buffer(kind: u32) -> bool {
    STORAGE.contains(&kind) || UNIFORM.contains(&kind)
}

/// Returns the name of what a capability needs, for a reason.
fn describe(need: Need) -> String {
    match need {
        Need::Core | Need::FloatControl => "Vulkan 1.3".to_owned(),
        Need::Feature(name) => format!("the feature {name}"),
        Need::Extension(name) => format!("the extension {name}"),
        Need::Subgroup(bit) => {
            let names = [
                "basic",
                "vote",
                "arithmetic",
                "ballot",
                "shuffle",
                "relative shuffle",
                "clustered",
                "quad",
                "partitioned",
            ];
            let name = names.get(bit.trailing_zeros() as usize).unwrap_or(&"these");
            format!("{name} subgroup operations")
        }
    }
}
