//! Defines [`Module`], the parts of a SPIR-V module by id (types, constants, variables, functions), and questions
//! about it. Bytes go in ([`Module::read`]); [`Module::check`] says whether all of them are valid.

mod reader;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::error::ReadError;
use crate::numbers::{LOCAL_SIZE, LOCAL_SIZE_ID, op, storage_class, version};
use crate::types::Type;
use crate::words::Header;
use reader::Reader;

/// SPIR-V's universal limit of ids; a module with more is invalid.
const MAX_BOUND: u32 = 0x3f_ffff;

/// An instruction of a [`Module`]: its opcode, and the place of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredInstruction {
    /// The opcode: the number of the kind of instruction.
    pub op: u16,
    operand_count: u16,
    /// The index of the instruction's first word in the module.
    at: usize,
}

/// A variable outside of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The id of the variable's type, which is a pointer.
    pub type_id: u32,
    /// Storage class (the kind of memory that the variable is in).
    pub class: u32,
    /// The id of the variable's initial value.
    pub initializer: Option<u32>,
}

/// The decorations of an id: facts such as its binding, and its layout in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // They have the specification's names.
pub struct Decorations {
    pub set: Option<u32>,
    pub binding: Option<u32>,
    pub built_in: Option<u32>,
    pub spec_id: Option<u32>,
    pub array_stride: Option<u32>,
}

/// The decorations of a member of a structure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MemberDecorations {
    pub offset: Option<u32>,
    pub matrix_stride: Option<u32>,
    pub row_major: bool,
    pub built_in: Option<u32>,
}

/// A function of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// The ids of the parameters, each with that of its type.
    pub parameters: Vec<(u32, u32)>,
    /// The instructions between the parameters and the end, without lines and names.
    pub body: Vec<StoredInstruction>,
}

/// The size of workgroups as an execution mode gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalSize {
    /// The sizes as numbers, by axis.
    Literal([u32; 3]),
    /// The ids of constants that are the sizes, by axis.
    Ids([u32; 3]),
}

/// A compute entry point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryPoint {
    /// Name.
    pub name: String,
    /// The id of the entry point's function.
    pub function: u32,
    /// The ids of the variables in the entry point's interface: since SPIR-V 1.4 all that it uses.
    pub interface: Vec<u32>,
    /// Execution modes with their operands.
    pub modes: Vec<(u32, Vec<u32>)>,
}

/// The parts of a module, most of them by id.
#[derive(Debug, Default)]
pub struct Module {
    words: Vec<u32>,
    /// The first invalid part, if any.
    fault: Option<ReadError>,
    /// Operands of `OpCapability`.
    pub capabilities: BTreeSet<u32>,
    /// Operands of `OpExtension`.
    pub extensions: BTreeSet<String>,
    /// Types by id.
    pub types: HashMap<u32, Type>,
    /// Constants, specialised or not, in their order; each begins with the ids of its type and its result.
    pub constants: Vec<StoredInstruction>,
    /// Decorations by id.
    pub decorations: HashMap<u32, Decorations>,
    /// Decorations of members, by the id of the structure and the number of the member.
    pub members: HashMap<(u32, u32), MemberDecorations>,
    /// Variables outside of functions, by id.
    pub variables: HashMap<u32, Variable>,
    /// Functions by id.
    pub functions: HashMap<u32, Function>,
    entry_points: Vec<EntryPoint>,
    /// The id of the import of `GLSL.std.450`.
    pub glsl: Option<u32>,
    /// The constant that is decorated as the size of workgroups.
    pub workgroup_size: Option<u32>,
}

impl Module {
    /// Reads a module from its little-endian bytes. Unknown instructions are skipped, and so are invalid ones, which
    /// [`Module::check`] reports.
    ///
    /// # Errors
    /// The bytes are not SPIR-V, an instruction is cut off, or there are too many.
    pub fn read(bytes: &[u8]) -> Result<Module, ReadError> {
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(ReadError::PartialWord(bytes.len()));
        }
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let header = Header::read(&words)?;
        let mut reader = Reader {
            module: Module {
                fault: header.check().err(),
                ..Module::default()
            },
            bound: header.bound,
            function: None,
        };
        if let Err(error) = reader.read(&words) {
            return Err(reader.module.fault.unwrap_or(error));
        }
        let mut module = reader.module;
        module.words = words;
        Ok(module)
    }

    /// Checks that the module may be given to a driver: that the header, the known instructions, and the ids that
    /// these define are valid.
    ///
    /// # Errors
    /// The error names the first invalid part.
    pub fn check(&self) -> Result<(), ReadError> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Returns the version as the header has it: `0x1_0600` for 1.6.
    pub fn version(&self) -> u32 {
        self.words.get(1).copied().unwrap_or(0)
    }

    /// Returns the words of the whole module.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    /// Returns the operands of an instruction of this module, its type and result among them.
    pub fn operands(&self, instruction: &StoredInstruction) -> &[u32] {
        let start = instruction.at + 1;
        let end = start + usize::from(instruction.operand_count);
        self.words.get(start..end).unwrap_or_default()
    }

    /// Returns the compute entry point with this name.
    ///
    /// # Errors
    /// There is no such entry point, or its function is not defined.
    pub fn entry_point(&self, name: &str) -> Result<&EntryPoint, ReadError> {
        let entry = self.entry_points.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| ReadError::NoEntryPoint(name.to_owned()))?;
        match self.functions.contains_key(&entry.function) {
            true => Ok(entry),
            false => Err(ReadError::NoFunction(name.to_owned())),
        }
    }

    /// Returns the ids of a function and of all functions that it calls, directly or not.
    pub fn reached_functions(&self, function: u32) -> HashSet<u32> {
        let mut reached = HashSet::from([function]);
        let mut open = vec![function];
        while let Some(id) = open.pop() {
            let body = self.functions.get(&id).map(|function| &function.body);
            for instruction in body.into_iter().flatten() {
                if instruction.op == op::FUNCTION_CALL
                    && let [_, _, callee, ..] = self.operands(instruction)
                    && reached.insert(*callee)
                {
                    open.push(*callee);
                }
            }
        }
        reached
    }

    /// Returns the ids of the variables outside of functions that an entry point uses.
    pub fn used_variables(&self, entry: &EntryPoint) -> BTreeSet<u32> {
        let mut used = BTreeSet::new();
        for id in self.reached_functions(entry.function) {
            let body = self.functions.get(&id).map(|function| &function.body);
            for instruction in body.into_iter().flatten() {
                let named = named_pointers(instruction.op, self.operands(instruction));
                used.extend(named.iter().filter(|id| self.variables.contains_key(id)));
            }
        }
        if self.version() >= version::V1_4 {
            used.retain(|id| entry.interface.contains(id));
        }
        used
    }

    /// Returns whether any function reads or writes memory by its address.
    pub fn follows_addresses(&self) -> bool {
        let is_physical = |type_id: &u32| {
            let class = storage_class::PHYSICAL_STORAGE_BUFFER;
            matches!(self.types.get(type_id), Some(Type::Pointer { class: of, .. }) if *of == class)
        };
        let mut all = self.functions.values().flat_map(|function| &function.body);
        all.any(|instruction| match instruction.op {
            op::CONVERT_U_TO_PTR => true,
            op::ACCESS_CHAIN
            | op::IN_BOUNDS_ACCESS_CHAIN
            | op::PTR_ACCESS_CHAIN
            | op::IN_BOUNDS_PTR_ACCESS_CHAIN
            | op::BITCAST => self.operands(instruction).first().is_some_and(is_physical),
            _ => false,
        })
    }
}

impl Header {
    /// Checks the version, the bound and the schema.
    fn check(self) -> Result<(), ReadError> {
        let (major, minor) = (self.version >> 16, self.version >> 8 & 0xff);
        if major != 1 || minor > 6 {
            return Err(ReadError::Version { major, minor });
        }
        match self {
            Header {
                bound: 1..=MAX_BOUND,
                schema: 0,
                ..
            } => Ok(()),
            _ => Err(ReadError::Header),
        }
    }
}

impl EntryPoint {
    /// Returns the size of workgroups; `None` if no execution mode gives it.
    pub fn local_size(&self) -> Option<LocalSize> {
        let triple = |wanted: u32| {
            let mut modes = self.modes.iter().filter(|(mode, _)| *mode == wanted);
            modes.find_map(|(_, values)| <[u32; 3]>::try_from(values.as_slice()).ok())
        };
        (triple(LOCAL_SIZE_ID).map(LocalSize::Ids))
            .or_else(|| triple(LOCAL_SIZE).map(LocalSize::Literal))
    }
}

/// Returns the operands of an instruction that may be pointers to variables.
fn named_pointers(op: u16, operands: &[u32]) -> &[u32] {
    match (op, operands) {
        (op::FUNCTION_CALL, [_, _, _, arguments @ ..]) => arguments,
        (
            op::IMAGE_TEXEL_POINTER
            | op::LOAD
            | op::ACCESS_CHAIN..=op::ARRAY_LENGTH
            | op::IN_BOUNDS_PTR_ACCESS_CHAIN
            | op::COPY_OBJECT
            | op::ATOMIC_LOAD
            | op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR,
            [_, _, pointer, ..],
        ) => std::slice::from_ref(pointer),
        (op::STORE | op::ATOMIC_STORE, [pointer, ..]) => std::slice::from_ref(pointer),
        (op::COPY_MEMORY | op::COPY_MEMORY_SIZED, [_, _, ..]) => &operands[..2],
        (op::SELECT | op::PHI, [_, _, sources @ ..]) => sources,
        // Any operand of an extension may be a pointer.
        (400.., operands) => operands,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[u32]) -> Result<Module, ReadError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Module::read(&bytes)
    }

    #[test]
    fn words_that_are_no_module_are_refused() {
        let errors = |words: &[u32]| read(words).err();
        assert_eq!(errors(&[]), Some(ReadError::NoHeader));
        assert_eq!(errors(&[1, 2, 3, 4, 5]), Some(ReadError::NotSpirv));
        assert_eq!(Module::read(&[0; 3]).err(), Some(ReadError::PartialWord(3)));
        let header = [0x0723_0203, 0x10300, 0, 9, 0];
        assert!(read(&header).is_ok());
        let torn = [header.as_slice(), &[0xffff_0011]].concat();
        assert_eq!(errors(&torn), Some(ReadError::TornInstruction { at: 5 }));
    }

    #[test]
    fn instructions_that_are_not_known_are_skipped() {
        let words = [
            0x0723_0203,
            0x10300,
            0,
            9,
            0,
            0x0002_1fff,
            77,
            0x0004_0015,
            3,
            32,
            1,
        ];
        let module = read(&words).unwrap();
        let int = Type::Int {
            bits: 32,
            signed: true,
        };
        assert_eq!(module.types[&3], int);
        assert_eq!(module.check(), Ok(()));
    }

    #[test]
    fn what_is_invalid_is_said_and_does_not_end_the_reading() {
        let words = [
            0x0723_0203,
            0x10300,
            0,
            9,
            0,
            0x0004_0015,
            3,
            32,
            1,
            0x0004_0015,
            9,
            32,
            0,
        ];
        let module = read(&words).unwrap();
        assert!(module.types.contains_key(&3));
        assert_eq!(
            module.check(),
            Err(ReadError::Instruction { at: 9, op: 21 })
        );
        let module = read(&[0x0723_0203, 0x10700, 0, 9, 0]).unwrap();
        let version = ReadError::Version { major: 1, minor: 7 };
        assert_eq!(module.check(), Err(version));
    }
}
