//! Describes a module in one walk over its words, for hooks: finds entry points, the source's name, and the accesses
//! of the code to descriptors (the places by which a kernel names its buffers). An access through a pointer counts
//! for the variable that the pointer is derived from.

use std::collections::HashMap;

use crate::numbers::{
    GL_COMPUTE, LOCAL_SIZE, LOCAL_SIZE_ID, WORKGROUP_SIZE, decoration, op, storage_class,
};
use crate::words::{Header, Instruction, Instructions, Literal};

/// The description of a module. Facts that the module does not state are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Compute entry points.
    pub entry_points: Vec<EntryPointSize>,
    /// The source file that debug information names.
    pub source_name: String,
    /// Variables of descriptors, by set, binding and id.
    pub variables: Vec<BoundVariable>,
    /// Whether the module has pointers to memory that no descriptor names.
    pub uses_addresses: bool,
}

/// A compute entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPointSize {
    /// Name.
    pub name: String,
    /// The size of workgroups, with the defaults of specialisation constants; zeros where it is not known.
    pub local_size: [u32; 3],
}

/// A variable that names a descriptor, with the accesses of any code of the module to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundVariable {
    /// Descriptor set; 0 where the module does not say.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// The variable's id.
    pub id: u32,
    /// Storage class (the kind of memory that the variable is in).
    pub class: u32,
    /// Whether a known instruction reads the variable.
    pub reads: bool,
    /// Whether a known instruction writes the variable.
    pub writes: bool,
    /// Whether the variable may be written: an instruction names it that is not known to leave it unchanged.
    pub may_be_written: bool,
}

impl Description {
    /// Describes a module, as far as its words are whole instructions; words that are not SPIR-V have an empty description.
    pub fn read(words: &[u32]) -> Description {
        let mut reader = Reader::default();
        if Header::read(words).is_ok() {
            for instruction in Instructions::new(words).map_while(Result::ok) {
                reader.take(instruction);
            }
        }
        reader.finish()
    }
}

/// The ids that a description rests on. Operands stay where they are in the module.
#[derive(Default)]
struct Reader<'a> {
    /// The words of strings, by id.
    strings: HashMap<u32, &'a [u32]>,
    /// Constants of 32 bits, with their defaults.
    constants: HashMap<u32, u32>,
    /// The parts of constant vectors, by id.
    composites: HashMap<u32, &'a [u32]>,
    /// The function and the name of each compute entry point.
    entry_points: Vec<(u32, &'a [u32])>,
    /// The size of workgroups as numbers, by function.
    sizes: HashMap<u32, [u32; 3]>,
    /// The size of workgroups as ids of constants, by function.
    size_ids: HashMap<u32, &'a [u32]>,
    /// The constant that is decorated as the size of workgroups.
    workgroup_size: Option<u32>,
    /// The descriptor set, by the id of a variable or of a group of decorations.
    sets: HashMap<u32, u32>,
    /// The binding, by the same ids.
    bindings: HashMap<u32, u32>,
    variables: Vec<BoundVariable>,
    /// Index into `variables`, by the id of a variable or of a pointer that is derived from it.
    roots: HashMap<u32, usize>,
    /// The string that names the source.
    source_file: Option<u32>,
    uses_addresses: bool,
}

impl<'a> Reader<'a> {
    /// Notes what an instruction says of entry points, constants, decorations and variables; follows all others.
    fn take(&mut self, Instruction { op, operands, .. }: Instruction<'a>) {
        match (op, operands) {
            (op::STRING, [id, text @ ..]) => {
                self.strings.insert(*id, text);
            }
            (op::SOURCE, [_, _, file, ..]) => self.source_file = Some(*file),
            (op::ENTRY_POINT, [GL_COMPUTE, function, name @ ..]) => {
                self.entry_points.push((*function, name));
            }
            (op::EXECUTION_MODE, [function, LOCAL_SIZE, x, y, z]) => {
                self.sizes.insert(*function, [*x, *y, *z]);
            }
            (op::EXECUTION_MODE_ID, [function, LOCAL_SIZE_ID, ids @ ..]) => {
                self.size_ids.insert(*function, ids);
            }
            (op::CONSTANT | op::SPEC_CONSTANT, [_, id, value, ..]) => {
                self.constants.insert(*id, *value);
                self.may_write(operands);
            }
            (op::CONSTANT_COMPOSITE | op::SPEC_CONSTANT_COMPOSITE, [_, id, parts @ ..]) => {
                self.composites.insert(*id, parts);
                self.may_write(operands);
            }
            (op::DECORATE, [id, decoration, value]) => match *decoration {
                decoration::BUILT_IN if *value == WORKGROUP_SIZE => {
                    self.workgroup_size = Some(*id);
                }
                decoration::BINDING => drop(self.bindings.insert(*id, *value)),
                decoration::DESCRIPTOR_SET => drop(self.sets.insert(*id, *value)),
                _ => {}
            },
            (op::GROUP_DECORATE, [group, targets @ ..]) => {
                for known in [&mut self.sets, &mut self.bindings] {
                    if let Some(value) = known.get(group).copied() {
                        known.extend(targets.iter().map(|target| (*target, value)));
                    }
                }
            }
            (op::TYPE_POINTER, [_, storage_class::PHYSICAL_STORAGE_BUFFER, ..])
            | (op::TYPE_FORWARD_POINTER, [_, storage_class::PHYSICAL_STORAGE_BUFFER]) => {
                self.uses_addresses = true;
            }
            (op::VARIABLE | op::UNTYPED_VARIABLE_KHR, [_, id, class, ..]) => {
                if let Some(binding) = self.bindings.get(id) {
                    self.roots.insert(*id, self.variables.len());
                    self.variables.push(BoundVariable {
                        set: self.sets.get(id).copied().unwrap_or(0),
                        binding: *binding,
                        id: *id,
                        class: *class,
                        reads: false,
                        writes: false,
                        may_be_written: false,
                    });
                }
            }
            _ => self.follow(op, operands),
        }
    }

    /// Follows pointers through an instruction, and notes the reads and writes of their variables. An instruction
    /// that is not known to leave memory unchanged may write through any operand.
    fn follow(&mut self, op: u16, operands: &[u32]) {
        match (op, operands) {
            (
                op::ACCESS_CHAIN
                | op::IN_BOUNDS_ACCESS_CHAIN
                | op::PTR_ACCESS_CHAIN
                | op::IN_BOUNDS_PTR_ACCESS_CHAIN
                | op::COPY_OBJECT,
                [_, id, base, ..],
            ) => {
                self.derive(*id, *base);
                return;
            }
            (
                op::LOAD
                | op::ATOMIC_LOAD
                | op::COOPERATIVE_MATRIX_LOAD_KHR
                | op::COOPERATIVE_MATRIX_LOAD_NV,
                [_, _, pointer, ..],
            ) => {
                self.at(*pointer, |variable| variable.reads = true);
                return;
            }
            (op::COPY_MEMORY | op::COPY_MEMORY_SIZED, [to, from, ..]) => {
                self.at(*from, |variable| variable.reads = true);
                self.at(*to, |variable| {
                    variable.writes = true;
                    variable.may_be_written = true;
                });
                return;
            }
            // Names, lines, decorations and the length of an array touch no memory.
            (
                0..=op::LINE
                | op::DECORATION_GROUP
                | op::MEMBER_DECORATE
                | op::GROUP_MEMBER_DECORATE,
                _,
            )
            | (op::ENTRY_POINT | op::DECORATE | op::DECORATE_ID | op::MODULE_PROCESSED, _)
            | (op::DECORATE_STRING | op::MEMBER_DECORATE_STRING | op::ARRAY_LENGTH, _) => return,
            (
                op::STORE
                | op::ATOMIC_STORE
                | op::COOPERATIVE_MATRIX_STORE_KHR
                | op::COOPERATIVE_MATRIX_STORE_NV,
                [pointer, ..],
            ) => self.at(*pointer, |variable| variable.writes = true),
            (
                op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR
                | op::ATOMIC_F_MIN_EXT
                | op::ATOMIC_F_MAX_EXT
                | op::ATOMIC_F_ADD_EXT,
                [_, _, pointer, ..],
            ) => self.use_freely(std::slice::from_ref(pointer)),
            // A function may use a pointer that it is given in any way.
            (op::FUNCTION_CALL, [_, _, _, arguments @ ..]) => self.use_freely(arguments),
            // The result is followed as a pointer from one of the two sources.
            (op::SELECT, [_, id, _, a, b]) => {
                self.derive(*id, *a);
                self.use_freely(std::slice::from_ref(b));
            }
            _ => {}
        }
        self.may_write(operands);
    }

    /// Notes that an instruction may write through any of its operands; a number that only looks like a pointer's id does no harm.
    fn may_write(&mut self, operands: &[u32]) {
        for id in operands {
            self.at(*id, |variable| variable.may_be_written = true);
        }
    }

    /// Notes that pointers may be read and written.
    fn use_freely(&mut self, pointers: &[u32]) {
        for pointer in pointers {
            self.at(*pointer, |variable| {
                variable.reads = true;
                variable.writes = true;
            });
        }
    }

    /// Notes that a pointer points into the variable of another one.
    fn derive(&mut self, id: u32, base: u32) {
        if let Some(root) = self.roots.get(&base).copied() {
            self.roots.insert(id, root);
        }
    }

    /// Changes the variable that a pointer points into, if it is a descriptor's.
    fn at(&mut self, pointer: u32, change: impl FnOnce(&mut BoundVariable)) {
        let root = self.roots.get(&pointer);
        if let Some(variable) = root.and_then(|root| self.variables.get_mut(*root)) {
            change(variable);
        }
    }

    /// Returns the size of workgroups of an entry point's function; zeros for what is not known.
    fn local_size(&self, function: u32) -> [u32; 3] {
        // The built-in constant overrides execution modes.
        let built_in = self.workgroup_size.and_then(|id| self.composites.get(&id));
        match built_in.or_else(|| self.size_ids.get(&function)) {
            Some(ids) => [0, 1, 2].map(|axis| {
                let value = ids.get(axis).and_then(|id| self.constants.get(id));
                value.copied().unwrap_or(0)
            }),
            None => self.sizes.get(&function).copied().unwrap_or_default(),
        }
    }

    /// Puts the description together, with the variables in their order.
    fn finish(mut self) -> Description {
        let entry_points = self
            .entry_points
            .iter()
            .map(|(function, name)| EntryPointSize {
                name: Literal::read(name).text,
                local_size: self.local_size(*function),
            });
        let entry_points = entry_points.collect();
        let source = self.source_file.and_then(|id| self.strings.get(&id));
        self.variables
            .sort_by_key(|variable| (variable.set, variable.binding, variable.id));
        Description {
            entry_points,
            source_name: source.map_or_else(String::new, |text| Literal::read(text).text),
            variables: self.variables,
            uses_addresses: self.uses_addresses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(op: u16, operands: &[u32]) -> Vec<u32> {
        [
            &[(operands.len() as u32 + 1) << 16 | u32::from(op)],
            operands,
        ]
        .concat()
    }

    /// A module with an entry point, three descriptors in set 3, and this code.
    fn describe(code: &[(u16, &[u32])]) -> Description {
        let mut words = vec![0x0723_0203, 0x10500, 0, 100, 0];
        let name = u32::from_le_bytes(*b"sin\0");
        words.extend(instruction(op::ENTRY_POINT, &[GL_COMPUTE, 1, name]));
        words.extend(instruction(op::EXECUTION_MODE, &[1, LOCAL_SIZE, 64, 2, 1]));
        for (variable, binding) in [(10, 0), (11, 1), (12, 2)] {
            words.extend(instruction(
                op::DECORATE,
                &[variable, decoration::DESCRIPTOR_SET, 3],
            ));
            words.extend(instruction(
                op::DECORATE,
                &[variable, decoration::BINDING, binding],
            ));
            words.extend(instruction(op::VARIABLE, &[9, variable, 12]));
        }
        for (op, operands) in code {
            words.extend(instruction(*op, operands));
        }
        Description::read(&words)
    }

    fn may_be_written(code: &[(u16, &[u32])]) -> Vec<bool> {
        let found = describe(code).variables;
        found
            .iter()
            .map(|variable| variable.may_be_written)
            .collect()
    }

    /// The second variable is written with what the first one holds.
    const COPY: [(u16, &[u32]); 4] = [
        (op::ACCESS_CHAIN, &[9, 20, 10, 7]),
        (op::LOAD, &[9, 21, 20]),
        (op::ACCESS_CHAIN, &[9, 22, 11, 7]),
        (op::STORE, &[22, 21]),
    ];

    #[test]
    fn entry_points_and_accesses_are_those_of_the_code() {
        let found = describe(&COPY);
        let entry = EntryPointSize {
            name: "sin".to_owned(),
            local_size: [64, 2, 1],
        };
        assert_eq!(found.entry_points, [entry]);
        let accesses = found
            .variables
            .iter()
            .map(|of| (of.set, of.binding, of.reads, of.writes));
        let expected = [
            (3, 0, true, false),
            (3, 1, false, true),
            (3, 2, false, false),
        ];
        assert!(accesses.eq(expected));
        assert_eq!(may_be_written(&COPY), [false, true, false]);
    }

    #[test]
    fn a_pointer_in_an_instruction_that_is_not_known_may_be_written() {
        assert_eq!(
            may_be_written(&[(6000, &[9, 30, 12])]),
            [false, false, true]
        );
        assert_eq!(
            may_be_written(&[(op::FUNCTION_CALL, &[9, 30, 40, 10])]),
            [true, false, false]
        );
    }

    #[test]
    fn pointers_to_any_memory_are_found() {
        let class = storage_class::PHYSICAL_STORAGE_BUFFER;
        assert!(describe(&[(op::TYPE_POINTER, &[50, class, 6])]).uses_addresses);
        assert!(!describe(&[(op::TYPE_POINTER, &[50, 12, 6])]).uses_addresses);
    }

    #[test]
    fn torn_modules_give_what_they_have() {
        assert_eq!(Description::read(&[]), Description::default());
        assert_eq!(
            Description::read(&[1, 2, 3, 4, 5, 6]),
            Description::default()
        );
        let torn = [0x0723_0203, 0, 0, 0, 0, 0xffff_000f];
        assert_eq!(Description::read(&torn), Description::default());
    }
}
