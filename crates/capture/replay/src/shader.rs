//! Reads from a SPIR-V module the capabilities, descriptors, memory and matrices that one of its entry points needs:
//! bytes, the entry point's name and specialisation constants go in, a [`Shader`] comes out. `check` compares it with
//! a device.

#[cfg(test)]
mod tests;
mod types;

use std::collections::{BTreeMap, BTreeSet};

use gapscope_capture::model::Binding;
use gapscope_spirv::numbers::{op, storage_class};
use gapscope_spirv::{Constants, HEADER_WORDS, LocalSize, Module, ReadError, Specialisation};

pub use types::Element;

/// An entry point of a module: its needs of a device, and the descriptors that it uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Shader {
    /// The module's words.
    pub words: Vec<u32>,
    /// Minor version of SPIR-V 1.
    pub version: u32,
    /// Operands of `OpCapability`.
    pub capabilities: BTreeSet<u32>,
    /// Operands of `OpExtension`.
    pub extensions: BTreeSet<String>,
    /// The size of workgroups, specialised; `None` if it depends on constants that cannot be evaluated.
    pub local_size: Option<[u32; 3]>,
    /// Whether ids give the size of workgroups (`LocalSizeId`).
    pub has_size_ids: bool,
    /// Descriptors that the entry point uses.
    pub slots: Vec<Slot>,
    /// Shared memory of a workgroup in bytes; `None` if it depends on constants that cannot be evaluated.
    pub shared_bytes: Option<u64>,
    /// Whether shared memory begins as zeros.
    pub zeroes_shared_memory: bool,
    /// Whether the shader reads or writes memory by device addresses.
    pub follows_addresses: bool,
    /// Whether results may depend on the number of invocations of a subgroup.
    pub knows_subgroups: bool,
    /// Float controls as pairs of the capability's number and the width in bits.
    pub float_controls: BTreeSet<(u32, u32)>,
    /// The types of the cooperative matrices in the module.
    pub matrices: BTreeSet<Matrix>,
    /// The sizes of specialisation constants in bytes, by `SpecId`.
    pub constant_bytes: BTreeMap<u32, u64>,
    /// Numbers of execution modes.
    pub modes: BTreeSet<u32>,
}

/// A descriptor that a shader uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Whether the descriptor is a buffer.
    pub is_buffer: bool,
    /// The number of descriptors; `None` if only the layout gives it.
    pub count: Option<u32>,
    /// The type of the buffer's elements; `None` unless it is an array of plain numbers.
    pub element: Option<Element>,
}

/// The type of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Matrix {
    /// `VkComponentTypeKHR`
    pub component: i32,
    /// `VkScopeKHR`
    pub scope: u32,
    /// Number of rows.
    pub rows: u32,
    /// Number of columns.
    pub columns: u32,
    /// The matrix's role in `A × B + C`: 0 is A, 1 is B, 2 is the accumulator C.
    pub role: u32,
}

/// Returns whether a number is that of `GroupNonUniform` or a related capability, or of `SubgroupBallotKHR`,
/// `SubgroupVoteKHR`, `GroupNonUniformPartitionedEXT` or `GroupNonUniformRotateKHR`.
fn is_subgroup_capability(number: u32) -> bool {
    matches!(number, 61..=68 | 4423 | 4431 | 5297 | 6026)
}

/// Returns whether a number is that of the built-in `SubgroupSize`, `NumSubgroups`, `SubgroupId`,
/// `SubgroupLocalInvocationId` or a subgroup mask.
fn is_subgroup_built_in(number: u32) -> bool {
    matches!(number, 36 | 38 | 40 | 41 | 4416..=4420)
}

/// Returns the float control of an execution mode from `DenormPreserve` to `RoundingModeRTZ`, whose capabilities have
/// corresponding numbers; `None` for another mode.
fn float_control((mode, values): &(u32, Vec<u32>)) -> Option<(u32, u32)> {
    match (mode, values.as_slice()) {
        (4459..=4463, [width]) => Some((mode + 5, *width)),
        _ => None,
    }
}

impl Shader {
    /// Reads a module for one entry point.
    ///
    /// # Errors
    /// The module is invalid, and must not reach a driver; or there is no such entry point.
    pub fn read(
        code: &[u8],
        entry: &str,
        specialisation: &Specialisation,
    ) -> Result<Shader, ReadError> {
        let module = Module::read(code)?;
        module.check()?;
        let entry = module.entry_point(entry)?;
        let constants = Constants::new(&module, specialisation);
        let types = types::Types {
            module: &module,
            constants: &constants,
        };
        let used = module.used_variables(entry);
        let variables = || used.iter().map(|id| (id, &module.variables[id]));
        let mut slots: Vec<Slot> = Vec::new();
        for (id, variable) in variables() {
            let Some(decorations) = module.decorations.get(id) else {
                continue;
            };
            let (Some(set), Some(binding)) = (decorations.set, decorations.binding) else {
                continue;
            };
            let slot = types.slot(variable, set, binding);
            // Variables of one binding may disagree about its type.
            match (slots.iter_mut()).find(|known| (known.set, known.binding) == (set, binding)) {
                Some(known) => {
                    known.is_buffer &= slot.is_buffer;
                    known.element = known.element.filter(|_| known.element == slot.element);
                    known.count = known.count.max(slot.count);
                }
                None => slots.push(slot),
            }
        }
        slots.sort_by_key(|slot| (slot.set, slot.binding));
        let shared = variables().map(|(_, variable)| variable);
        let shared = shared.filter(|variable| variable.class == storage_class::WORKGROUP);
        let shared: Vec<_> = shared.collect();
        let shared_bytes = shared
            .iter()
            .map(|variable| types.variable_bytes(variable))
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
        let by_mode = entry.local_size();
        let built_in_size = module.workgroup_size.and_then(|id| constants.vector(id));
        let local_size = built_in_size.or_else(|| match by_mode? {
            LocalSize::Ids(ids) => constants.words(ids),
            LocalSize::Literal(size) => Some(size),
        });
        let mut built_ins = (module.decorations.values().filter_map(|of| of.built_in))
            .chain(module.members.values().filter_map(|of| of.built_in));
        let knows_subgroups = built_ins.any(is_subgroup_built_in)
            || (module.capabilities.iter()).any(|number| is_subgroup_capability(*number));
        Ok(Shader {
            version: module.version() >> 8 & 0xff,
            capabilities: module.capabilities.clone(),
            extensions: module.extensions.clone(),
            local_size,
            has_size_ids: matches!(by_mode, Some(LocalSize::Ids(_))),
            slots,
            shared_bytes,
            zeroes_shared_memory: shared.iter().any(|of| of.initializer.is_some()),
            follows_addresses: module.follows_addresses(),
            knows_subgroups,
            float_controls: entry.modes.iter().filter_map(float_control).collect(),
            matrices: types.matrices(),
            constant_bytes: types.constant_bytes(),
            modes: entry.modes.iter().map(|(mode, _)| *mode).collect(),
            words: module.into_words(),
        })
    }

    /// Returns the type of elements that the shader declares for a binding; `None` if they are not plain numbers.
    pub fn element(&self, binding: &Binding) -> Option<Element> {
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| (slot.set, slot.binding) == (binding.set, binding.binding));
        slot?.element
    }

    /// Removes the declaration of a capability that the shader does not use.
    pub fn undeclare(&mut self, capability: u32) {
        // Capabilities come first, and each has two words.
        const HEAD: u32 = 2 << 16 | op::CAPABILITY as u32;
        let mut at = HEADER_WORDS;
        while let Some([HEAD, declared]) = self.words.get(at..at + 2) {
            match *declared == capability {
                true => drop(self.words.drain(at..at + 2)),
                false => at += 2,
            }
        }
        self.capabilities.remove(&capability);
    }
}
