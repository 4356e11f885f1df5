//! SPIR-V, of whoever wrote it: its structure is checked, and what a device must have for it is read (SPIR-V specification 1.6, section
//! 2.3 for the layout and 3.52 for the instructions).

mod constants;
mod read;
#[cfg(test)]
mod tests;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use types::Element;

/// A module's entry point: what it needs, and what it uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Shader {
    /// The module's words.
    pub words: Vec<u32>,
    /// Minor version of SPIR-V 1.
    pub version: u32,
    /// `OpCapability`
    pub capabilities: BTreeSet<u32>,
    /// `OpExtension`
    pub extensions: BTreeSet<String>,
    /// Threads of a workgroup, specialised; none: it depends on what cannot be told.
    pub local_size: Option<[u32; 3]>,
    /// Its size is given by ids (`LocalSizeId`).
    pub has_size_ids: bool,
    /// Descriptors that the entry point uses.
    pub slots: Vec<Slot>,
    /// Shared memory of a workgroup, in bytes; none: it depends on what cannot be told.
    pub shared_bytes: Option<u64>,
    /// Shared memory begins as zeros.
    pub zeroes_shared_memory: bool,
    /// It reads or writes through device addresses.
    pub follows_addresses: bool,
    /// Its results may depend on how many threads a subgroup has.
    pub knows_subgroups: bool,
    /// Float controls: the capability's number, and the width in bits.
    pub float_controls: BTreeSet<(u32, u32)>,
    /// Cooperative matrices.
    pub matrices: BTreeSet<Matrix>,
    /// The sizes of specialisation constants in bytes, by `SpecId`.
    pub constant_bytes: BTreeMap<u32, u64>,
    /// How it converges: numbers of execution modes.
    pub modes: BTreeSet<u32>,
}

/// A descriptor that a shader uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// It is a buffer, and nothing else.
    pub is_buffer: bool,
    /// How many descriptors; none: the layout says it.
    pub count: Option<u32>,
    /// What the buffer is an array of, where it is one of plain numbers.
    pub element: Option<Element>,
}

/// The type of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Matrix {
    /// `VkComponentTypeKHR`
    pub component: i32,
    /// `VkScopeKHR`
    pub scope: u32,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// 0: A, 1: B, 2: accumulator.
    pub role: u32,
}

/// The values of specialisation constants, by `SpecId`.
pub type Specialisation = BTreeMap<u32, Vec<u8>>;

impl Shader {
    /// Reads a module for one entry point.
    ///
    /// # Errors
    /// What is wrong with it: it must not reach a driver.
    pub fn read(
        code: &[u8],
        entry: &str,
        specialisation: &Specialisation,
    ) -> Result<Shader, String> {
        let words = words(code)?;
        let module = read::Module::read(&words)?;
        let found = module.entry(entry)?;
        let constants = constants::Constants::of(&module, specialisation);
        let types = types::Types {
            module: &module,
            constants: &constants,
        };
        let used = module.used_by(found);
        let variables = || {
            let used = used.iter().filter_map(|id| module.variables.get(id));
            used.copied()
        };
        let mut slots: Vec<Slot> = Vec::new();
        for variable in variables() {
            let Some(place) = module.places.get(&variable.id) else {
                continue;
            };
            let (Some(set), Some(binding)) = *place else {
                continue;
            };
            let slot = types.slot(variable, set, binding);
            // Two variables of one binding: of what type they agree, or none.
            match slots
                .iter_mut()
                .find(|known| (known.set, known.binding) == (set, binding))
            {
                Some(known) => {
                    known.is_buffer &= slot.is_buffer;
                    known.element = known.element.filter(|_| known.element == slot.element);
                    known.count = known.count.max(slot.count);
                }
                None => slots.push(slot),
            }
        }
        slots.sort_by_key(|slot| (slot.set, slot.binding));
        let shared = variables().filter(|variable| variable.class == class::WORKGROUP);
        let shared: Vec<_> = shared.collect();
        let shared_bytes = shared
            .iter()
            .map(|variable| types.pointee_bytes(variable.pointer))
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
        let builtin_size = module.built_in_size.and_then(|id| constants.triple_of(id));
        let local_size = match (builtin_size, found.size_ids) {
            (Some(size), _) => Some(size),
            (None, Some(ids)) => constants.triple(ids),
            (None, None) => found.size,
        };
        Ok(Shader {
            version: module.version,
            capabilities: module.capabilities.clone(),
            extensions: module.extensions.clone(),
            local_size,
            has_size_ids: found.size_ids.is_some(),
            slots,
            shared_bytes,
            zeroes_shared_memory: shared.iter().any(|variable| variable.is_initialised),
            follows_addresses: module.follows_addresses,
            knows_subgroups: module.knows_subgroups
                || (module.capabilities.iter()).any(|number| {
                    (61..=68).contains(number) || [4423, 4431, 5297, 6026].contains(number)
                }),
            float_controls: found.float_controls.clone(),
            matrices: types.matrices(),
            constant_bytes: types.constant_bytes(),
            modes: found.modes.clone(),
            words,
        })
    }
}

impl Shader {
    /// Takes back that it declares a capability, of which it makes no use.
    pub fn undeclare(&mut self, capability: u32) {
        let instruction = [2 << 16 | OP_CAPABILITY, capability];
        let mut at = HEADER_WORDS;
        while let Some(head) = self.words.get(at) {
            let length = (head >> 16) as usize;
            if self.words[at..].starts_with(&instruction) {
                self.words.drain(at..at + length);
                continue;
            }
            // Capabilities come first.
            if length == 0 || head & 0xffff != OP_CAPABILITY {
                break;
            }
            at += length;
        }
        self.capabilities.remove(&capability);
    }
}

const HEADER_WORDS: usize = 5;
const OP_CAPABILITY: u32 = 17;

/// The little-endian words of a module.
fn words(code: &[u8]) -> Result<Vec<u32>, String> {
    let (words, rest) = code.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("its {} bytes are not whole words", code.len()));
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Numbers of storage classes.
mod class {
    pub const UNIFORM: u32 = 2;
    pub const WORKGROUP: u32 = 4;
    pub const STORAGE_BUFFER: u32 = 12;
    pub const PHYSICAL_STORAGE_BUFFER: u32 = 5349;
}

/// Ids by what they are.
type Map<T> = HashMap<u32, T>;
